# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs against runs (docs/explain/verdicts.md)."""
