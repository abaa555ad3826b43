# SPDX-License-Identifier: GPL-2.0-or-later
"""The encrypted LVM volume group with a file system and swap of the original report.

    DEV -> dm-crypt crypt-partition -> PV -> VG crypt-volume -> LV crypt-logical (file system)
                                                             -> LV crypt-swap (swap)

The key is random and lives in the kernel's memory alone, from create to destroy. What must be
undone is written to /run/desktop-freeze before it is done: `destroy` also cleans up after SIGKILL.
"""
