# SPDX-License-Identifier: GPL-2.0-or-later
"""Which clock a guest waits by, and whether its disk can be a model.

docs/explain/machines-and-clocks.md
"""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from contract.options import Options
from errors import Exit, UserError
from run.demands import QEMU_BYTES, host_memory
from setup import cache
from vm import disk_model, emulator
from vm.disk_spec import DiskModel
from vm.qemu import GUEST, HOST
from vm.room import free_bytes
from workloads import registry

HINT = "leave it out, or say --clock host"
DISK_BYTES = 3 << 30  # of a guest's root and of its disk under test, at the most


class Timing(NamedTuple):
    """A guest's clock (vm.qemu.GUEST or HOST) and why; its disk's model, and that one's library."""

    clock: str
    why: str
    disk: DiskModel | None = None
    library: Path | None = None


def at_once(options: Options, clock: str) -> int:
    """How many runs are done side by side: on the host's clock they would measure each other.

    One for each core, as far as there are memory (/proc/meminfo, MemAvailable) and room for them.
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
    """Room on the host for a guest's throw-away disks, at the most."""
    return DISK_BYTES + max(registry.disk_bytes(options.of(one)) for one in options.variants)


def together(options: Options, clocks: Iterable[str]) -> int:
    """How many runs of guests that wait by these clocks are done side by side."""
    return min((at_once(options, clock) for clock in clocks), default=1)


def wanted(options: Options) -> str:
    """The clock that these options will have, if nothing is missing here; UserError if none can.

    With --accel auto a guest that can have a clock of its own is emulated (accelerator()).
    """
    if options.device is not None or options.clock == HOST:
        return HOST
    reason = why_not(options, "kvm" if options.accel == "kvm" else "tcg")
    if options.clock == GUEST and reason:
        raise UserError(f"--clock guest: {reason}", hint=HINT, status=Exit.USAGE)
    return HOST if reason else GUEST


def accelerator(options: Options) -> tuple[str, str]:
    """The accelerator to ask for, and why if it is emulation.

    `auto` is emulation where that gives the guest a clock of its own, whether or not KVM works: a
    run is the same on every host then. Else KVM is tried. UserError if --clock guest cannot be.
    """
    if options.accel == "auto" and timing(options, "tcg").clock == GUEST:
        return "tcg", "for a guest's clock; --accel kvm asks for KVM"
    return options.accel, "asked for" if options.accel == "tcg" else ""


def modelled(options: Options) -> DiskModel | None:
    """The disk that the options describe; None unless they say all of it."""
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
    """What keeps a guest from having a clock of its own; empty if nothing does."""
    if accel != "tcg":
        return "only an emulated guest has a clock of its own"
    if not options.cpu_mips:
        return "the machine does not say how fast its CPU is (cpu_mips)"
    if options.cpus != 1:
        return f"one counter of instructions does not serve {options.cpus} CPUs"
    if modelled(options) is None and (options.disk_iops or options.disk_bps):
        return "its disk has limits but no model, and QEMU's own throttle counts on the host's"
    if (options.music or "").startswith("rsync://"):
        return "the music comes from another machine"
    return ""


def timing(options: Options, accel: str) -> Timing:
    """The clock that was asked for, as far as it can be; UserError if only another can be."""
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
