# SPDX-License-Identifier: GPL-2.0-or-later
"""What loads the machine, a module each."""
