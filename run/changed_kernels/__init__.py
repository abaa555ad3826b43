# SPDX-License-Identifier: GPL-2.0-or-later
"""Kernels that are built for a campaign: how they are asked for, and what came of building them."""
