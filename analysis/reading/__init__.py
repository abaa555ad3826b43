# SPDX-License-Identifier: GPL-2.0-or-later
"""The one reader of results (docs/reference/results-format.md)."""
