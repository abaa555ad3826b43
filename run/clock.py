# SPDX-License-Identifier: GPL-2.0-or-later
"""Chooses a guest's clock, and whether its disk is a model.

docs/explain/machines-and-clocks.md
"""

import os
from collections.abc import Iterable

from contract.options import Options
from errors import Exit, UserError
from run.demands import QEMU_BYTES, host_memory
from setup import cache
from vm import disk_model, emulator
from vm.disk_spec import DiskModel
from vm.guest import Timing
from vm.qemu import GUEST, HOST
from vm.room import free_bytes
from workloads import registry

HINT = "leave it out, or give --clock host"
DISK_BYTES = 3 << 30  # of a guest's root and disk under test, at most


def at_once(options: Options, clock: str) -> int:
    """The number of runs in parallel; 1 on the host's clock, where they would disturb each other.

    Otherwise one per core, as far as memory (MemAvailable of /proc/meminfo) and disk space allow.
    """
    if clock == HOST:
        return 1
    if options.jobs:
        return options.jobs
    memory = host_memory("MemAvailable")
    disks = free_bytes(cache.place()) // disk_bytes(options)
    fit = memory // (options.most_memory + QEMU_BYTES), disks
    return max(1, min(len(os.sched_getaffinity(0)), *fit))


def disk_bytes(options: Options) -> int:
    """Disk space on the host for a guest's temporary disks, at most, bytes."""
    return DISK_BYTES + max(
        registry.disk_bytes(options.of(variant)) for variant in options.variants
    )


def parallel_jobs(options: Options, clocks: Iterable[str]) -> int:
    """The number of runs in parallel for guests with these clocks."""
    return min((at_once(options, clock) for clock in clocks), default=1)


def expected_clock(options: Options) -> str:
    """The clock that a guest with these options gets if nothing is missing here.

    With --accel auto a guest that can have its own clock is emulated (accelerator()). UserError if
    --clock guest is not possible.
    """
    if options.device is not None or options.clock == HOST:
        return HOST
    reason = why_not(options, "kvm" if options.accel == "kvm" else "tcg")
    if options.clock == GUEST and reason:
        raise UserError(f"--clock guest: {reason}", hint=HINT, status=Exit.USAGE)
    return HOST if reason else GUEST


def accelerator(options: Options) -> tuple[str, str]:
    """The accelerator to use, and why if it is emulation.

    `auto` means emulation if that gives the guest its own clock, even if KVM works: then a run is
    the same on every host. Else KVM is tried. UserError if --clock guest is not possible.
    """
    if options.accel == "auto" and timing(options, "tcg").clock == GUEST:
        return "tcg", "for a guest's clock; --accel kvm asks for KVM"
    return options.accel, "asked for" if options.accel == "tcg" else ""


def modelled(options: Options) -> DiskModel | None:
    """The disk that the options describe; None if they do not describe it completely."""
    o = options
    if not o.disk_kind or not o.disk_iops or not o.disk_bps:
        return None
    return DiskModel(
        rotates=o.disk_kind == "rotating",
        iops=o.disk_iops,
        bytes_per_s=o.disk_bps,
        parallel=o.disk_parallel or 1,
        depth=o.disk_depth or 1,
        queues=o.disk_queues or 1,
    )


def why_not(options: Options, accel: str) -> str:
    """Why a guest cannot have its own clock; empty if it can."""
    if accel != "tcg":
        return "only an emulated guest has a clock of its own"
    if not options.cpu_mips:
        return "the machine does not say how fast its CPU is (cpu_mips)"
    if options.cpus != 1:
        return f"the guest's clock needs one CPU, not {options.cpus}"
    if modelled(options) is None and (options.disk_iops or options.disk_bps):
        return "its disk has limits but no model, and QEMU's own throttle counts on the host's"
    if (options.music or "").startswith("rsync://"):
        return "the music comes from another machine"
    return ""


def timing(options: Options, accel: str) -> Timing:
    """The clock and the disk, as requested if possible; UserError if --clock guest is not."""
    disk = modelled(options)
    reason = "asked for" if options.clock == HOST else why_not(options, accel)
    library = None
    if disk is not None or not reason:
        try:
            library = disk_model.library(emulator.find(options.qemu))
        except disk_model.Unusable as error:
            reason, disk = str(error), None
    if not reason:
        return Timing(GUEST, "emulated: instructions are counted", disk, library)
    if options.clock == GUEST:
        raise UserError(f"--clock guest: {reason}", hint=HINT)
    return Timing(HOST, reason, disk, library)
