# SPDX-License-Identifier: GPL-2.0-or-later
"""Builds the layers on a checked device: loop, dm-crypt, PV, VG, two LVs, file system and swap."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from errors import UserError
from setup.crypt_lvm import mapper
from setup.crypt_lvm.mapper import lvm, run
from setup.crypt_lvm.stack import Stack, save_state, stack_of
from setup.devices import loop_devices
from setup.devices.check import FS_MINIMUM, SWAP_MINIMUM
from setup.devices.device import MIB, Device, opened

FILE_SYSTEMS = ("ext4", "ext3", "ext2", "xfs")
SWAP_BYTES = 2 << 30
# A larger file system only makes mkfs slower; that of the original report had 5 GiB.
FS_MAXIMUM = 16 << 30
EXTENT = 4 << 20  # bytes of LVM's default extent
BYTES_PER_INODE = 64 << 10  # for ext2 to ext4; xfs makes inodes when they are needed
# A fixed seed, so that a file's name hashes to the same block in every run.
HASH_SEED = "5eed5eed-5eed-4eed-8eed-5eed5eed5eed"


class Room(NamedTuple):
    """The room for files in a stack's file system; inodes: their number in ext2 to ext4."""

    bytes: int
    inodes: int


def room(device: int) -> Room:
    """The room that a stack on a device of `device` bytes has for sure, without a reserve."""
    extents, _ = split(device // EXTENT - 1, EXTENT, SWAP_BYTES)
    size = extents * EXTENT
    return Room(size * 19 // 20 - (64 << 20), size // BYTES_PER_INODE)


def build(device: Device, state: dict[str, Any], swap_bytes: int, wipe: bool) -> Stack:
    """Build on a device that is checked and claimed; writes only to this device."""
    with _disk(device, state) as disk:
        state["stack"]["disk"] = disk.node
        # From here on, undoing includes zeroing the device's ends.
        save_state(state, stage="written")
        if wipe:
            # By force: otherwise it would try to claim the device itself.
            run("wipefs", "--all", "--force", "--quiet", disk.node)
            disk.zero_ends()
            # Partitions of the erased table would keep the device busy.
            disk.reread_partitions()
        disk.release()
        return _layers(disk.node, state, swap_bytes)


def _layers(device: str, state: dict[str, Any], swap_bytes: int) -> Stack:
    stack = stack_of(state)
    physical = device
    if stack.crypt:
        mapper.open_crypt(device, Path(stack.crypt).name)
        physical = stack.crypt
    lvm(physical, "pvcreate", "-ff", "--yes", "--norestorefile", physical)
    lvm(physical, "vgcreate", stack.vg, physical)
    report = lvm(
        physical,
        *("vgs", "--noheadings", "--nosuffix", "--units", "b", "--separator", " "),
        *("-o", "vg_free_count,vg_extent_size,vg_uuid", stack.vg),
    )
    extents, extent = (int(word) for word in report.split()[:2])
    state["stack"]["vg_uuid"] = report.split()[2]
    save_state(state)
    fs_extents, swap_extents = split(extents, extent, swap_bytes)
    for name, count in (("crypt-logical", fs_extents), ("crypt-swap", swap_extents)):
        lvm(
            physical,
            *("lvcreate", "--yes", "--wipesignatures", "y", "--extents", str(count)),
            *("--name", stack.prefix + name, stack.vg),
        )
    if not Path(stack.fs_device).exists() or not Path(stack.swap_device).exists():
        lvm(physical, "vgmknodes", stack.vg)
    make_file_system(stack)
    run("mkswap", stack.swap_device)
    state["stack"]["swap_bytes"] = swap_extents * extent
    save_state(state, stage="created")
    return stack_of(state)


@contextlib.contextmanager
def _disk(device: Device, state: dict[str, Any]) -> Iterator[Device]:
    """The block device to build on, claimed: the device itself, or a loop device on the file.

    The file gets all of its blocks, and its IO is direct: swap through the page cache of a file
    system needs memory to free memory. With 256 MiB several runs deadlocked in this way: the loop
    device's worker waited for a page of that cache, and reclaim, which held all bios of the file
    system, waited for the worker.
    """
    if device.is_block:
        yield device
        return
    file, name = device.descriptor, device.name
    try:
        os.posix_fallocate(file, 0, device.size)
    except OSError as error:
        raise UserError(f"{name}: {error.strerror}", hint="all of its blocks are needed") from None
    loop = loop_devices.attach(file, lambda node: save_state(state, loop=node))
    device.release()
    own = loop_devices.backing_of(device.stat)
    with opened(loop) as disk:
        with contextlib.suppress(OSError):
            disk.claim()
        if not disk.is_claimed or loop not in loop_devices.on(own):
            raise UserError(f"another program took {loop} while it was made for {name}")
        if not loop_devices.is_direct(loop):
            raise UserError(
                f"{name} has no direct IO: swap through its page cache can hang the machine",
                hint="name a partition, or a file on ext4 or xfs",
            )
        yield disk


def split(extents: int, extent: int, swap_bytes: int) -> tuple[int, int]:
    """Divide `extents` extents of `extent` bytes; the numbers for the file system and for swap."""
    least = max(-(-FS_MINIMUM // extent), extents // 3)
    swap = min(max(-(-swap_bytes // extent), 1), extents - least)
    if swap < 1 or swap * extent < min(swap_bytes, SWAP_MINIMUM - 2 * extent):
        raise UserError(f"too small: {extents * extent // MIB} MiB for a file system and swap")
    return min(extents - swap, FS_MAXIMUM // extent), swap


def make_file_system(stack: Stack) -> None:
    device, fs = stack.fs_device, stack.fs
    if fs == "xfs":
        run("mkfs.xfs", "-q", "-f", "-K", device, timeout=600)
        return
    # Lazy initialisation would go on in the background during the test. Without it, inode tables
    # and journal of the usual size would take several seconds on an emulated machine.
    journal = [] if fs == "ext2" else ["-J", "size=32"]
    options = f"lazy_itable_init=0,lazy_journal_init=0,nodiscard,hash_seed={HASH_SEED}"
    run(
        "mke2fs",
        "-qF",
        "-t",
        fs,
        "-i",
        str(BYTES_PER_INODE),
        *journal,
        "-E",
        options,
        device,
        timeout=600,
    )


def free_prefix() -> str:
    """The first prefix with which our names are unused in device-mapper, LVM and /dev."""
    names, groups = set(mapper.mapped()), mapper.volume_groups()
    for number in range(100):
        prefix = "" if number == 0 else f"desktop-freeze-{number}-"
        vg = f"{prefix}crypt-volume"
        start = mapper.mangled(vg, "")
        taken = f"{prefix}crypt-partition" in names or any(n.startswith(start) for n in names)
        if not taken and vg not in groups and not Path(f"/dev/{vg}").exists():
            return prefix
    raise UserError("all names for the volume group are in use")
