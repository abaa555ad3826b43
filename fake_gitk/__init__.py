# SPDX-License-Identifier: GPL-2.0-or-later
"""A gitk without a window: it reads a history, touches memory and prints lines."""
