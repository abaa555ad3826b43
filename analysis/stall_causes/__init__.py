# SPDX-License-Identifier: GPL-2.0-or-later
"""Finds what stalled programs waited for (docs/explain/causes.md)."""
