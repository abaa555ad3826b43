# SPDX-License-Identifier: GPL-2.0-or-later
"""In a machine with KVM: how fast a guest's disk is, and how a guest ends early there.

usage: python3 -m tests.support.under_kvm FOLDER
There are then disk/ and disk-speed.json, panicked/ (by sysrq) and killed/ (its QEMU, by SIGKILL).
"""

import json
import signal
import sys
from pathlib import Path

from run.arguments import parse
from tests.support.vms import WhenUnderWay, disk_speeds, guest, run_in_vm
from vm.machine import Machine

SMALL = ["--profile", "quick", "--commits", "2000", "--gitk", "2", "--accel", "kvm"]
LONG = [*SMALL, "--passes", "1000", "--no-evidence"]
UNDER_WAY_S = 4.0


def _panic(machine: Machine, began: float) -> None:
    machine.sysrq("c")


def _kill(machine: Machine, began: float) -> None:
    machine.process.send_signal(signal.SIGKILL)


def main(folder: Path) -> None:
    """All three, one after the other."""
    speeds = disk_speeds(folder / "disk", *SMALL)
    (folder / "disk-speed.json").write_text(json.dumps(speeds))
    for name, act in (("panicked", _panic), ("killed", _kill)):
        run_dir = folder / name
        when = WhenUnderWay(run_dir, UNDER_WAY_S, act)
        run_in_vm(run_dir, parse(LONG), ready=guest(*LONG), booted=when)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
