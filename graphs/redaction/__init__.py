# SPDX-License-Identifier: GPL-2.0-or-later
"""Which words of results are secrets, and tokens for them."""
