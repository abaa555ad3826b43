# SPDX-License-Identifier: GPL-2.0-or-later
"""Estimates how long runs will take."""
