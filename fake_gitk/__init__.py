# SPDX-License-Identifier: GPL-2.0-or-later
"""A gitk without a window: reads a history, touches memory, prints lines."""
