# SPDX-License-Identifier: GPL-2.0-or-later
"""Makes bug-report.tar.gz (docs/guides/report-upstream.md)."""
