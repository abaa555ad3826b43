# SPDX-License-Identifier: GPL-2.0-or-later
"""The PNGs, and the .gp files to draw them again."""
