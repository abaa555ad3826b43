# SPDX-License-Identifier: GPL-2.0-or-later
"""The observers of a run, locked in memory."""
