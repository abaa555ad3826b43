# SPDX-License-Identifier: GPL-2.0-or-later
"""Which clock a guest waits by, and whether its disk can be a model (docs/MACHINES.md)."""

import os
from pathlib import Path
from typing import NamedTuple

from contract.options import Options
from errors import UserError
from vm import disk_model
from vm.disk_model import DiskModel
from vm.qemu import GUEST, HOST, PROGRAM


class Timing(NamedTuple):
    """A guest's clock (vm.qemu.GUEST or HOST) and why; its disk's model, and that one's library."""

    clock: str
    why: str
    disk: DiskModel | None = None
    library: Path | None = None


def at_once(options: Options, clock: str) -> int:
    """How many runs are done side by side: on the host's clock they would measure each other."""
    if clock == HOST:
        return 1
    return options.jobs or len(os.sched_getaffinity(0))


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
            library = disk_model.library(PROGRAM)
        except disk_model.Unusable as error:
            reason, disk = str(error), None
    if not reason:
        return Timing(GUEST, "emulated: instructions are counted", disk, library)
    if options.clock == GUEST:
        raise UserError(f"--clock guest: {reason}", hint="leave it out, or say --clock host")
    return Timing(HOST, reason, disk, library)
