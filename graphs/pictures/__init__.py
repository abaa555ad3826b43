# SPDX-License-Identifier: GPL-2.0-or-later
"""Draws the PNG pictures, and writes the .gp files to draw them again."""
