# SPDX-License-Identifier: GPL-2.0-or-later
"""Damaged results, and what the commands that read them do: `python3 -m tests.fuzz`."""
