# SPDX-License-Identifier: GPL-2.0-or-later
"""Kernels that are built for a campaign: their options, and the results of building them."""
