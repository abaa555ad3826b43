# SPDX-License-Identifier: GPL-2.0-or-later
"""How long runs take: what is said before they are over, and what it rests on."""
