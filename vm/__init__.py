# SPDX-License-Identifier: GPL-2.0-or-later
"""One virtual machine, from its command line to its end."""
