# SPDX-License-Identifier: GPL-2.0-or-later
"""Speed and error rates, measured."""

from contract.environment import enter

enter()
