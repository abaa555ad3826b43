# SPDX-License-Identifier: GPL-2.0-or-later
"""bug-report.tar.gz (docs/BUNDLE.md)."""
