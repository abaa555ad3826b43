# SPDX-License-Identifier: GPL-2.0-or-later
"""Results judged: read, reckoned, explained, compared, said."""

from contract.environment import enter

enter()
