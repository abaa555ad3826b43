# SPDX-License-Identifier: GPL-2.0-or-later
"""Reads results, computes figures, explains stalls, compares variants, writes reports."""

from contract.environment import enter

enter()
