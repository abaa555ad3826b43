# SPDX-License-Identifier: GPL-2.0-or-later
"""The encrypted LVM volume group with a file system and swap of the original report.

    DEV -> dm-crypt crypt-partition -> PV -> VG crypt-volume -> LV crypt-logical (file system)
                                                             -> LV crypt-swap (swap)

The key is random and exists only in the kernel's memory, from create to destroy. Each step is
recorded in /run/desktop-freeze before it is done, so that `destroy` also cleans up after SIGKILL.
"""
