# SPDX-License-Identifier: GPL-2.0-or-later
"""A guest, ready on the host; the errand that it is sent on; its kernel's command line."""

from dataclasses import dataclass
from pathlib import Path

from setup.kernels import Kernel
from vm.disk_spec import DiskModel
from vm.emulator import Emulator
from vm.qemu import HOST

# A kernel that hangs shall still say where: sysrq over the serial line, an NMI that panics, and a
# panic that prints all CPUs' stacks (panic_print bit 6, kernel commit 60c958d8df9c, 5.18). The
# delays of tasks are counted in all runs, whether they are read or not: one kernel configuration.
APPEND = (
    "console=ttyS0 panic=-1 sysrq_always_enabled unknown_nmi_panic panic_print=0x40 "
    "net.ifnames=0 delayacct"
)
# QEMU's emulated CPUs share one time stamp counter, which Linux does not know: it would fall back
# to the HPET, and each look at the clock would be a trapped access to an emulated device.
APPEND_TCG = " tsc=reliable"


def append(accel: str, more: str = "") -> str:
    """The guest kernel's command line; more: the variant's own words."""
    return APPEND + (APPEND_TCG if accel == "tcg" else "") + (f" {more}" if more else "")


@dataclass(frozen=True)
class Guest:
    """A virtual machine with all that it needs, ready on the host; memory in bytes.

    suite: the folder with what it gets of the suite, as it was when the guest was made ready.
    append: more of its kernel's command line; music: a folder, or rsync://HOST/module of another
    machine. machine: the name of the machine that it is, and in changed the options that made it
    another. clock: GUEST or HOST, and why. disk: its model, if it has one; else disk_iops and
    disk_bps limit it on the host's clock. library: of the model, whose way with requests a guest's
    clock needs even for a disk without one. music_image: a disk with the folder `music`: on its own
    clock the guest cannot wait for another machine. more_disks: of the same kind as the disk under
    test, beside it.
    """

    kernel: Kernel
    initrd: Path
    root_image: Path
    suite: Path
    history_image: Path | None  # None: of a workload that reads none
    music: str
    accel: str
    accel_reason: str
    emulator: Emulator
    memory: int
    cpus: int
    disk_iops: int | None = None
    disk_bps: int | None = None
    append: str = ""
    machine: str = HOST
    changed: tuple[str, ...] = ()
    clock: str = HOST
    clock_reason: str = ""
    mips: int | None = None
    disk: DiskModel | None = None
    library: Path | None = None
    music_image: Path | None = None
    more_disks: int = 0


@dataclass(frozen=True)
class Errand:
    """What a guest is to do: a shell script, the files that it sends meanwhile, and its limits.

    progress: the streams of which a line says that the run goes on.
    """

    command: str
    files: list[str]
    timeout_s: int  # of the workload
    hang_after_s: int  # without a word from it
    progress: tuple[str, ...] = ()
    seed: int = 1  # of the randomness of a guest with a clock of its own
