# SPDX-License-Identifier: GPL-2.0-or-later
"""The host of a VM: its CPU, and how much of it others took while a run went on.

An emulated machine is only as fast as its host lets it be; a run beside a compiler is no measure.
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
    """Counts from its making on; make it before QEMU starts, ask after QEMU was waited for."""

    def __init__(self) -> None:
        self._busy, self._all = _host()
        self._ours = _ours()

    def share(self) -> float | None:
        """Share (0 to 1) of the host's CPU time that neither idled nor was ours or our children's.

        From /proc/stat (time stolen by a hypervisor counts as taken) and getrusage(2).
        """
        busy, every = _host()
        lasted = every - self._all
        if lasted <= 0:
            return None
        taken = busy - self._busy - (_ours() - self._ours)
        return round(min(1.0, max(0.0, taken / lasted)), 4)


def _host() -> tuple[float, float]:
    """Seconds of all CPUs since boot: busy, and all."""
    line = Path("/proc/stat").read_text().split("\n", 1)[0]
    # user nice system idle iowait irq softirq steal; guest time is in user already
    ticks = [int(word) for word in line.split()[1:9]]
    tick = os.sysconf("SC_CLK_TCK")
    idle = ticks[3] + ticks[4]
    return (sum(ticks) - idle) / tick, sum(ticks) / tick


def cpu_seconds(pid: int) -> float:
    """What a process and those of its children that ended have used, from /proc/PID/stat.

    OSError if it is gone.
    """
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


def _ours() -> float:
    used = 0.0
    for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN):
        usage = resource.getrusage(who)
        used += usage.ru_utime + usage.ru_stime
    return used
