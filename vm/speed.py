# SPDX-License-Identifier: GPL-2.0-or-later
"""How many instructions a second are emulated here: measured once by booting a kernel.

Only an estimate of how long runs will take rests on it, nothing that is measured.
"""

import json
import os
import platform
import time
from pathlib import Path

from setup import cache
from vm.emulator import SUITE, Emulator
from vm.guest import append
from vm.host import cpu_seconds
from vm.machine import DidNotStart, Machine, running
from vm.probe import SCRATCH, cpu_model
from vm.qemu import Spec

KIND = "probe"  # the folder in the cache, beside the verdicts on KVM
MIPS = 500  # of the guest that is booted: one that QEMU's -icount can do exactly
DEADLINE_S = 60.0
BEGUN, DONE = b"Linux version ", b"DESKTOP-FREEZE-SPEED "
# Programs that start and end, after the boot: in the kernel mostly, as the workloads are.
TENS = " ".join("0123456789")
LOAD = (
    "mount -t proc proc /proc; "
    f"for a in {TENS}; do for b in {TENS}; do cat /init >/dev/null; done; done; "
    f"read up idle </proc/uptime; echo {DONE.decode()}$up $idle end; poweroff -f"
)


def known(qemu: str) -> float | None:
    """Instructions a second under the QEMU of --qemu, if they were measured here; reads only."""
    try:
        found = json.loads(_file(cache.place(), qemu).read_bytes())
        return float(found["instructions_per_s"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def measured(qemu: str, emulator: Emulator, kernel: Path, initrd: Path) -> float | None:
    """The same, measured now if it was not; None if this kernel does not come to its end."""

    def build(path: Path) -> None:
        path.write_text(json.dumps({"instructions_per_s": round(boot(emulator, kernel, initrd))}))

    path = _file(cache.root(), qemu)
    try:
        cache.built(KIND, path.name, build)
    except (DidNotStart, TimeoutError):
        return None
    return known(qemu)


def boot(emulator: Emulator, kernel: Path, initrd: Path) -> float:
    """Instructions a second of QEMU's CPU time; TimeoutError if the guest does not say its end."""
    with cache.scratch(SCRATCH) as folder:
        log = folder / "console.log"
        spec = Spec(
            emulator=emulator,
            accel="tcg",
            kernel=kernel,
            initrd=initrd,
            append=f'{append("tcg")} rdinit=/bin/sh -- -c "{LOAD}"',
            memory=256 << 20,
            cpus=1,
            console_log=log,
            mips=MIPS,
            seed=1,
        )
        deadline = time.monotonic() + DEADLINE_S
        began: float | None = None
        with running(spec, folder) as machine:
            while machine.alive and time.monotonic() < deadline:
                spent = _cpu_seconds(machine)
                said = log.read_bytes() if log.exists() else b""
                if began is None and BEGUN in said:
                    began = spent
                busy = busy_seconds(said)
                if busy is not None and began is not None:
                    return busy * MIPS * 1e6 / max(spent - began, 0.01)
                time.sleep(0.01)
    raise TimeoutError(f"{kernel} did not come to its end in {DEADLINE_S:.0f} s")


def busy_seconds(console: bytes) -> float | None:
    """What the guest says of its own time: since its start, less what it was idle."""
    # The command line, which the kernel prints, holds the mark too, with no numbers after it.
    for line in console.split(DONE)[1:]:
        words = line.split()
        if len(words) < 3 or words[2] != b"end":
            continue
        try:
            return float(words[0]) - float(words[1])
        except ValueError:
            continue
    return None


def _cpu_seconds(machine: Machine) -> float:
    """CPU time of QEMU so far: what else this machine does meanwhile is not in it."""
    try:
        return cpu_seconds(machine.process.pid)
    except OSError:
        return 0.0


def _file(root: Path, qemu: str) -> Path:
    # By its name, since what only looks for it must not make the suite's own to ask its version.
    whose = qemu if qemu == SUITE else os.path.realpath(qemu)
    return root / KIND / f"speed-{cache.key('1', platform.release(), cpu_model(), whose)}.json"
