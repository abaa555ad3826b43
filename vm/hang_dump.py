# SPDX-License-Identifier: GPL-2.0-or-later
"""Collects where a guest hung, from QEMU's monitor and from the guest's kernel."""

import contextlib
import time
from pathlib import Path

from vm.machine import Machine
from vm.qmp import MonitorLost

WAIT_S = {"l": 3.0, "w": 2.0, "m": 2.0}
NMI_WAIT_S = 6.0


def collect(machine: Machine, console_log: Path, out: Path) -> None:
    """Fill out/ with registers.txt and console-evidence.log.

    The registers are read twice, to distinguish a spinning CPU from a waiting one. Then sysrq makes
    the kernel print all CPUs, blocked tasks and memory; this needs a CPU that takes interrupts. An
    NMI, which comes last, does not: with unknown_nmi_panic and panic_print on its command line, the
    kernel prints where its CPUs are, and panics.
    """
    out.mkdir(exist_ok=True)
    before = console_log.stat().st_size if console_log.exists() else 0
    with contextlib.suppress(MonitorLost, TimeoutError, RuntimeError, OSError):
        first = machine.monitor.human("info registers -a")
        time.sleep(0.5)
        second = machine.monitor.human("info registers -a")
        (out / "registers.txt").write_text(f"{first}\n--- 0.5 s later\n{second}\n")
        for letter, wait in WAIT_S.items():
            machine.sysrq(letter)
            time.sleep(wait)
        machine.monitor.execute("inject-nmi")
        end = time.monotonic() + NMI_WAIT_S
        while machine.alive and time.monotonic() < end:
            time.sleep(0.2)
    with contextlib.suppress(OSError), open(console_log, "rb") as console:
        console.seek(before)
        (out / "console-evidence.log").write_bytes(console.read())
