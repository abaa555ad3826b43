# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs a user's command, from its options to the last run."""
