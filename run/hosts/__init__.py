# SPDX-License-Identifier: GPL-2.0-or-later
"""A campaign's runs on other hosts, reached by ssh (docs/guides/fleet.md)."""
