# SPDX-License-Identifier: GPL-2.0-or-later
"""report.txt, the first file of a bundle."""
