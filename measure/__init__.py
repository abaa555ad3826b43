# SPDX-License-Identifier: GPL-2.0-or-later
"""One run on the machine that this runs on."""
