# SPDX-License-Identifier: GPL-2.0-or-later
"""Measures the suite's speed and error rates."""

from contract.environment import enter

enter()
