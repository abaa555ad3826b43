# SPDX-License-Identifier: GPL-2.0-or-later
"""Reads failed allocations and freezes from any kernel's log."""
