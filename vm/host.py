# SPDX-License-Identifier: GPL-2.0-or-later
"""The host of a VM: its CPU model, and how much CPU time other programs took during a run.

An emulated machine depends on its host's speed: a run beside a compiler measures nothing.
"""

import os
import resource
from pathlib import Path


def cpu_model() -> str | None:
    """The first `model name` of /proc/cpuinfo; None if it names none."""
    for line in Path("/proc/cpuinfo").read_text(errors="replace").splitlines():
        name, _, value = line.partition(":")
        if name.strip() == "model name":
            return value.strip()
    return None


class Others:
    """The CPU time of other programs since its creation.

    Create it before QEMU starts, and call share() after QEMU was reaped.
    """

    def __init__(self) -> None:
        self._busy, self._all = _host()
        self._ours = _ours()

    def share(self) -> float | None:
        """The share (0 to 1) of the host's CPU time that others took; None if no time passed.

        From /proc/stat (time stolen by a hypervisor counts as others') and getrusage(2).
        """
        busy, every = _host()
        lasted = every - self._all
        if lasted <= 0:
            return None
        taken = busy - self._busy - (_ours() - self._ours)
        return round(min(1.0, max(0.0, taken / lasted)), 4)


def _host() -> tuple[float, float]:
    """The seconds of all CPUs since boot: busy ones, and all."""
    line = Path("/proc/stat").read_text().split("\n", 1)[0]
    # user nice system idle iowait irq softirq steal; guest time is in user already
    ticks = [int(word) for word in line.split()[1:9]]
    tick = os.sysconf("SC_CLK_TCK")
    idle = ticks[3] + ticks[4]
    return (sum(ticks) - idle) / tick, sum(ticks) / tick


def cpu_seconds(pid: int) -> float:
    """The CPU seconds of a process and of its ended children, from /proc/PID/stat.

    OSError if the process is gone.
    """
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


def _ours() -> float:
    used = 0.0
    for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN):
        usage = resource.getrusage(who)
        used += usage.ru_utime + usage.ru_stime
    return used
