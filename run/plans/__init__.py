# SPDX-License-Identifier: GPL-2.0-or-later
"""Plans, a user's and a campaign's own, and the machine files that they name."""
