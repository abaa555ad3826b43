# SPDX-License-Identifier: GPL-2.0-or-later
"""Writes report.txt, the first file of a bundle."""
