# SPDX-License-Identifier: GPL-2.0-or-later
"""Plans, as asked for and as a campaign keeps them, and the file of a machine that they name."""
