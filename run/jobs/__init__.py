# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs as jobs: their description, and the workers that do them, here or on other machines."""
