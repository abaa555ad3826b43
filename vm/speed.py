# SPDX-License-Identifier: GPL-2.0-or-later
"""Measures once, by booting a kernel, how many instructions per second are emulated here.

Only the estimate of how long runs will take depends on it, no result.
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

KIND = "probe"  # its folder in the cache, which also has the verdicts on KVM
MIPS = 500  # of the booted guest: QEMU's -icount can do this number exactly
DEADLINE_S = 60.0
BEGUN, DONE = b"Linux version ", b"DESKTOP-FREEZE-SPEED "
# After the boot programs start and end, so that most time is spent in the kernel, as in workloads.
TENS = " ".join("0123456789")
LOAD = (
    "mount -t proc proc /proc; "
    f"for a in {TENS}; do for b in {TENS}; do cat /init >/dev/null; done; done; "
    f"read up idle </proc/uptime; echo {DONE.decode()}$up $idle end; poweroff -f"
)


def known(qemu: str) -> float | None:
    """Instructions per second under the QEMU of --qemu; None if not measured yet.

    Writes nothing.
    """
    try:
        content = json.loads(_file(cache.place(), qemu).read_bytes())
        return float(content["instructions_per_s"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def measured(qemu: str, emulator: Emulator, kernel: Path, initrd: Path) -> float | None:
    """Instructions per second, measured now if needed; None if this kernel does not power off."""

    def build(path: Path) -> None:
        path.write_text(json.dumps({"instructions_per_s": round(boot(emulator, kernel, initrd))}))

    path = _file(cache.root(), qemu)
    try:
        cache.built(KIND, path.name, build)
    except (DidNotStart, TimeoutError):
        return None
    return known(qemu)


def boot(emulator: Emulator, kernel: Path, initrd: Path) -> float:
    """Instructions per second of QEMU's CPU time.

    TimeoutError if the guest does not report its end.
    """
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
                console = log.read_bytes() if log.exists() else b""
                if began is None and BEGUN in console:
                    began = spent
                busy = busy_seconds(console)
                if busy is not None and began is not None:
                    return busy * MIPS * 1e6 / max(spent - began, 0.01)
                time.sleep(0.01)
    raise TimeoutError(f"{kernel} did not power off within {DEADLINE_S:.0f} s")


def busy_seconds(console: bytes) -> float | None:
    """The guest's own seconds since its start without its idle time; None before it prints them."""
    # The kernel prints its command line, which has the mark, too, but no numbers after it.
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
    """The CPU seconds of QEMU so far; other programs of this machine do not count."""
    try:
        return cpu_seconds(machine.process.pid)
    except OSError:
        return 0.0


def _file(root: Path, qemu: str) -> Path:
    # By QEMU's name, not its version: a mere look must not install the suite's own QEMU.
    whose = qemu if qemu == SUITE else os.path.realpath(qemu)
    return root / KIND / f"speed-{cache.key('1', platform.release(), cpu_model(), whose)}.json"
