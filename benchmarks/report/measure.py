# SPDX-License-Identifier: GPL-2.0-or-later
"""A program's time, stage by stage, and its memory, its children's included."""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from errors import UserError
from vm.host import cpu_seconds

SAMPLE_S = 0.1


@dataclass(frozen=True)
class Cost:
    """What a program took; times in seconds, memory in MiB."""

    seconds: dict[str, float]  # stage -> time by the clock
    cpu: dict[str, float]  # stage -> user and system time of all processes that ended by then
    together: float  # peak of all processes, pages that they share counted once; sampled

    @property
    def whole(self) -> float:
        """Seconds of all stages."""
        return sum(self.seconds.values())


def measured(command: Sequence[str], stages: dict[str, str]) -> Cost:
    """Run a Python program of this suite.

    `stages`: what a line of its standard error begins with when a stage begins -> the stage's name;
    a stage may begin more than once. What is before the first of them begins with "". UserError if
    the program fails, or never comes to one of its stages.
    """
    begin = time.monotonic()
    child = subprocess.Popen(
        [sys.executable, *command], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    over = threading.Event()
    peaks = [0.0]
    watcher = threading.Thread(target=_watch, args=(child.pid, over, peaks))
    watcher.start()
    seconds = dict.fromkeys(stages.values(), 0.0)
    cpu = dict(seconds)
    reached = {""}
    stage, since, spent, last = stages[""], begin, 0.0, ""
    assert child.stderr is not None
    with child.stderr:
        for line in child.stderr:
            last = line.strip()
            found = next((words for words in stages if words and last.startswith(words)), None)
            if found is not None:
                now, used = time.monotonic(), cpu_seconds(child.pid)
                seconds[stage] += now - since
                cpu[stage] += used - spent
                stage, since, spent = stages[found], now, used
                reached.add(found)
    _, status, usage = os.wait4(child.pid, 0)
    seconds[stage] += time.monotonic() - since
    cpu[stage] += usage.ru_utime + usage.ru_stime - spent
    over.set()
    watcher.join()
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise UserError(f"{' '.join(command)} ended with {child.returncode}: {last}")
    if missing := set(stages) - reached:
        raise UserError(f"{' '.join(command)} never said {sorted(missing)[0]!r}")
    return Cost(seconds, cpu, peaks[0])


def _watch(pid: int, over: threading.Event, peaks: list[float]) -> None:
    while not over.wait(SAMPLE_S):
        peaks[0] = max(peaks[0], sum(map(_resident, _family(pid))))


def _family(pid: int) -> list[int]:
    """The process and all that descend from it; those that are gone by now are left out."""
    family, new = [], [pid]
    while new:
        family += new
        new = [child for one in new for child in _children(one)]
    return family


def _children(pid: int) -> list[int]:
    children: list[int] = []
    try:
        for task in Path(f"/proc/{pid}/task").iterdir():
            children += map(int, (task / "children").read_text().split())
    except OSError:
        pass
    return children


def _resident(pid: int) -> float:
    """MiB in memory; a page that n processes share counts as an n-th of one in each."""
    try:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    except OSError:
        return 0.0
    sizes = [line.split()[1] for line in text.splitlines() if line.startswith("Pss:")]
    return sum(map(int, sizes)) / 1024
