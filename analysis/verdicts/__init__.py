# SPDX-License-Identifier: GPL-2.0-or-later
"""Compares runs with runs (docs/explain/verdicts.md)."""
