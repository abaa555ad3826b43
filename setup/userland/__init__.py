# SPDX-License-Identifier: GPL-2.0-or-later
"""The same Debian for all hosts: its packages as a tar, its programs, and the disks they make."""
