# SPDX-License-Identifier: GPL-2.0-or-later
"""What any kernel's log says of failed allocations and freezes."""
