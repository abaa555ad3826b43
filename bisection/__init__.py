# SPDX-License-Identifier: GPL-2.0-or-later
"""Computes which commit of a row made the runs worse, and which kernel to run next; no I/O."""
