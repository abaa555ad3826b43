# SPDX-License-Identifier: GPL-2.0-or-later
"""All of it in letters, laid out by one module."""
