# SPDX-License-Identifier: GPL-2.0-or-later
"""Measures one run, on the machine on which this code runs."""
