# SPDX-License-Identifier: GPL-2.0-or-later
"""How much a campaign of many runs in Slurm costs the machine that drives it."""
