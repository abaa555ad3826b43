# SPDX-License-Identifier: GPL-2.0-or-later
"""A metric over many kernels or nights: where it changed, how much, and how sure that is."""
