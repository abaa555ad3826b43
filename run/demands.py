# SPDX-License-Identifier: GPL-2.0-or-later
"""Whether what runs ask for is there: memory and disk, looked at before anything is made."""

import re
from dataclasses import replace
from pathlib import Path

from contract.options import Options
from errors import Exit, UserError
from setup.crypt_lvm import stack_build
from setup.devices.device import size_of, stat_of
from vm.room import WORK_DISK_BYTES
from workloads.registry import find

QEMU_BYTES = 512 << 20  # of memory beside the guest's
MIB = 1 << 20


def host_memory(which: str = "MemTotal") -> int:
    """Bytes of this machine's memory (/proc/meminfo), 0 if it does not say."""
    found = re.search(rf"^{which}: +(\d+) kB", Path("/proc/meminfo").read_text(), re.M)
    return int(found[1]) << 10 if found else 0


def check(options: Options) -> None:
    """UserError (2) if a VM's memory or disk cannot be, or the device is too small."""
    if options.device is not None:
        _check_device(options)
        return
    has = host_memory()
    if has and options.most_memory + QEMU_BYTES > has:
        raise UserError(
            f"--memory: a VM of {options.most_memory // MIB} MiB and QEMU's own "
            f"{QEMU_BYTES // MIB} need more than this host's {has // MIB} MiB",
            hint="say less with --memory",
            status=Exit.USAGE,
        )
    for one in map(options.of, options.variants):
        _check_disk(one, WORK_DISK_BYTES, "a VM's disk")


def _check_device(options: Options) -> None:
    """UserError (2) if the workload does not fit on the device, or into this machine's memory."""
    chosen = find(options.workload)
    chosen.check(replace(options, device=None, memory=host_memory() or options.memory))
    device = str(options.device)
    # One that is not there, or is neither, is refused in words of its own when it is looked at.
    if chosen.needs(options).bytes and (found := stat_of(device)):
        _check_disk(options, size_of(found), device)


def _check_disk(options: Options, size: int, name: str) -> None:
    need = find(options.workload).needs(options)
    try:
        room = stack_build.room(size)
    except UserError as error:  # too small for any stack
        raise UserError(f"{name}: {error}", hint="name a larger one", status=Exit.USAGE) from None
    files = f"{need.files:,} files of {need.bytes // MIB:,} MiB"
    if need.bytes > room.bytes:
        has = f"{room.bytes // MIB:,} MiB"
    elif options.fs != "xfs" and need.files > room.inodes:
        has = f"{room.inodes:,} inodes of {options.fs}"
    else:
        return
    raise UserError(
        f"--workload {options.workload}: {files} do not fit on {name}, which has {has} for them",
        hint=f"--load makes them less: {options.load}",
        status=Exit.USAGE,
    )
