# SPDX-License-Identifier: GPL-2.0-or-later
"""What a stall waited for (docs/explain/causes.md)."""
