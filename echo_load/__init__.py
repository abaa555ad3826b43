# SPDX-License-Identifier: GPL-2.0-or-later
"""ICMP echoes to this machine itself, of a size whose reply needs order-N GFP_ATOMIC memory."""
