# SPDX-License-Identifier: GPL-2.0-or-later
"""Makes a report: pictures, page and bundle."""

from contract.environment import enter

enter()
