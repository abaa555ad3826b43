# SPDX-License-Identifier: GPL-2.0-or-later
"""A block device or file of the user: opened once, and refused if it is in use or not empty."""
