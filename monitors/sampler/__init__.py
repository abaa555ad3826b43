# SPDX-License-Identifier: GPL-2.0-or-later
"""The observer of the kernel's counters and log."""
