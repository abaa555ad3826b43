# SPDX-License-Identifier: GPL-2.0-or-later
"""The observer of what silent programs wait for."""
