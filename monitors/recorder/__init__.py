# SPDX-License-Identifier: GPL-2.0-or-later
"""The observer that stamps every line."""
