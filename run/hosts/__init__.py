# SPDX-License-Identifier: GPL-2.0-or-later
"""Does a campaign's runs on other hosts by ssh (docs/guides/fleet.md)."""
