# SPDX-License-Identifier: GPL-2.0-or-later
"""Checks that memory and disk are enough for the runs, and that these fill the memory."""

from dataclasses import replace

from contract.option_table import MOST_COPIES
from contract.options import Options
from contract.values import MANAGED_OOM
from contract.workload import DESKTOP
from errors import Exit, UserError
from setup import meminfo
from setup.crypt_lvm import stack_build
from setup.devices.device import size_of, stat_of
from vm.room import WORK_DISK_BYTES
from workloads import desktop
from workloads.registry import find

QEMU_BYTES = 512 << 20  # QEMU's own memory, beside the guest's
MIB = 1 << 20
# A machine's own memory, beside the gitk's: 119 of 230 MiB when the workload starts.
OWN_BYTES = 150 * MIB
FILLS = 1.1  # parts of the memory in gitk's with which it freezes (1 GiB and --commit-copies 8)


def host_memory(which: str = "MemTotal") -> int:
    """This machine's memory in bytes (a key of /proc/meminfo); 0 if it is unknown."""
    return meminfo.in_bytes(which) or 0


def check(options: Options) -> None:
    """UserError (2) if a VM needs too much memory or disk, or the device is too small."""
    if options.device is not None:
        _check_device(options)
        return
    has = host_memory()
    if has and options.most_memory + QEMU_BYTES > has:
        raise UserError(
            f"--memory: a VM of {options.most_memory // MIB} MiB and QEMU's own "
            f"{QEMU_BYTES // MIB} need more than this host's {has // MIB} MiB",
            hint="give a smaller --memory",
            status=Exit.USAGE,
        )
    for variant_options in map(options.of, options.variants):
        _check_disk(variant_options, WORK_DISK_BYTES, "a VM's disk")


def memory_warnings(options: Options) -> list[str]:
    """Warnings that the desktop's gitk's will hardly swap, one for each size of memory.

    What a real history (--repo) takes is not known.
    """
    warnings = {}
    for alone in map(options.of, options.variants):
        if alone.workload != DESKTOP or alone.repo is not None:
            continue
        memory = alone.memory if options.device is None else host_memory()
        keeps = desktop.kept(alone, alone.commit_copies)
        if keeps + OWN_BYTES >= memory:
            continue
        fills = (n for n in range(1, MOST_COPIES + 1) if desktop.kept(alone, n) >= FILLS * memory)
        copies = next(fills, None)
        give = f"--commit-copies {copies}" if copies else "more --commits or --gitk"
        warnings[memory] = (
            f"the gitk's keep only about {keeps // MIB} of {memory // MIB} MiB: they will hardly "
            f"swap, and probably nothing freezes (give {give})"
        )
    return list(warnings.values())


def _check_device(options: Options) -> None:
    """UserError (2) if the workload does not fit on the device, or into this machine's memory.

    And for properties of systemd-oomd: a second one would take the first one's place.
    """
    properties = [name for name, _ in options.variants[0].slice if name.startswith(MANAGED_OOM)]
    if properties:
        raise UserError(
            f"--slice {properties[0]}: on this machine systemd tells systemd-oomd what to watch",
            hint="test systemd-oomd in a VM: --remedy systemd-oomd",
            status=Exit.USAGE,
        )
    chosen = find(options.workload)
    chosen.check(replace(options, device=None, memory=host_memory() or options.memory))
    device = str(options.device)
    # A missing device, or a file of another type, is refused later with its own message.
    if chosen.needs(options).bytes and (stat := stat_of(device)):
        _check_disk(options, size_of(stat), device)


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
        hint=f"reduce them with --load: {options.load}",
        status=Exit.USAGE,
    )
