# SPDX-License-Identifier: GPL-2.0-or-later
"""The parts of the workload `shrinker`, the program that does them, and their tables."""
