# SPDX-License-Identifier: GPL-2.0-or-later
"""Reads results (docs/reference/results-format.md)."""
