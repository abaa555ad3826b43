# SPDX-License-Identifier: GPL-2.0-or-later
"""A report: pictures, page and bundle."""

from contract.environment import enter

enter()
