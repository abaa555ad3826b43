# SPDX-License-Identifier: GPL-2.0-or-later
"""A guest that is ready on the host; the job it is to do; its kernel's command line."""

from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from setup.kernels import Kernel
from vm.disk_spec import DiskModel
from vm.emulator import Emulator
from vm.qemu import HOST

# A hung kernel shall still print where it hangs: by sysrq over the serial line, and by an NMI that
# panics and prints all CPUs' stacks (panic_print bit 6, kernel commit 60c958d8df9c, 5.18). All runs
# have delay accounting on, whether it is read or not, so that the kernel does the same work.
APPEND = (
    "console=ttyS0 panic=-1 sysrq_always_enabled unknown_nmi_panic panic_print=0x40 "
    "net.ifnames=0 delayacct"
)
# QEMU's emulated CPUs share one time stamp counter, but Linux does not know that: it would fall
# back to the HPET, and every reading of the clock would be a trapped access to an emulated device.
APPEND_TCG = " tsc=reliable"


def append(accel: str, more: str = "") -> str:
    """The guest kernel's command line; more: the variant's own words."""
    return APPEND + (APPEND_TCG if accel == "tcg" else "") + (f" {more}" if more else "")


class GuestFiles(NamedTuple):
    """What a guest boots and reads.

    suite: a folder with the suite's files for the guest, as they were when it was prepared.
    history_image: None if the workload reads no history. music_image: a disk with the folder
    `music`, because a guest with its own clock cannot wait for another machine; else None.
    """

    initrd: Path
    root_image: Path
    suite: Path
    history_image: Path | None = None
    music_image: Path | None = None


@dataclass(frozen=True)
class Hardware:
    """The modelled machine; memory in bytes.

    machine: its name; changed: the options that deviate from it. disk_iops (per second) and
    disk_bps (bytes per second) limit a disk without a model, on the host's clock. more_disks: the
    number of further disks like the one under test.
    """

    memory: int
    cpus: int
    machine: str = HOST
    changed: tuple[str, ...] = ()
    mips: int | None = None
    disk_iops: int | None = None
    disk_bps: int | None = None
    more_disks: int = 0


class Timing(NamedTuple):
    """A guest's clock (vm.qemu.GUEST or HOST) and why; its disk's model, or None.

    library: the compiled disk model; a guest's clock needs it even for a disk without a model.
    """

    clock: str
    why: str
    disk: DiskModel | None = None
    library: Path | None = None


@dataclass(frozen=True)
class Guest:
    """A virtual machine with all that it needs, ready on the host.

    append: more words of its kernel's command line. music: a folder, or rsync://HOST/module of
    another machine.
    """

    kernel: Kernel
    files: GuestFiles
    hardware: Hardware
    timing: Timing
    emulator: Emulator
    accel: str
    accel_reason: str
    music: str
    append: str = ""


@dataclass(frozen=True)
class GuestJob:
    """A guest's job: a shell script, the files that it sends meanwhile, and its time limits.

    progress: the streams whose lines show that the run makes progress.
    """

    command: str
    files: list[str]
    timeout_s: int  # limit of the workload
    hang_after_s: int  # longest silence of the guest
    progress: tuple[str, ...] = ()
    seed: int = 1  # for the randomness of a guest with its own clock
