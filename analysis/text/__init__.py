# SPDX-License-Identifier: GPL-2.0-or-later
"""Plain-text reports, laid out by `layout`."""
