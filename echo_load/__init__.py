# SPDX-License-Identifier: GPL-2.0-or-later
"""Sends ICMP echoes to this machine itself, whose replies need order-N GFP_ATOMIC memory."""
