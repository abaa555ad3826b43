# SPDX-License-Identifier: GPL-2.0-or-later
"""Measures a program's time by stage, and its memory, including its children's."""

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
    """The time (s) and memory (MiB) that a program took."""

    seconds: dict[str, float]  # stage -> elapsed time
    cpu: dict[str, float]  # stage -> user and system time of all processes that have ended
    together: float  # sampled peak of all processes; shared pages count once

    @property
    def whole(self) -> float:
        """Seconds of all stages."""
        return sum(self.seconds.values())


def measured(command: Sequence[str], stages: dict[str, str]) -> Cost:
    """Run a Python program of this suite.

    stages: prefix of the line on stderr with which a stage begins -> the stage's name; "" is for
    the time before the first such line. A stage may begin several times. UserError if the program
    fails, or does not get to one of its stages.
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
            prefix = next((words for words in stages if words and last.startswith(words)), None)
            if prefix is not None:
                now, used = time.monotonic(), cpu_seconds(child.pid)
                seconds[stage] += now - since
                cpu[stage] += used - spent
                stage, since, spent = stages[prefix], now, used
                reached.add(prefix)
    _, status, usage = os.wait4(child.pid, 0)
    seconds[stage] += time.monotonic() - since
    cpu[stage] += usage.ru_utime + usage.ru_stime - spent
    over.set()
    watcher.join()
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise UserError(f"{' '.join(command)} ended with status {child.returncode}: {last}")
    if missing := set(stages) - reached:
        raise UserError(f"{' '.join(command)} never printed {sorted(missing)[0]!r}")
    return Cost(seconds, cpu, peaks[0])


def _watch(pid: int, over: threading.Event, peaks: list[float]) -> None:
    while not over.wait(SAMPLE_S):
        peaks[0] = max(peaks[0], sum(map(_resident, _family(pid))))


def _family(pid: int) -> list[int]:
    """The pids of the process and of all its descendants that still run."""
    family, new = [], [pid]
    while new:
        family += new
        new = [child for parent in new for child in _children(parent)]
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
    """The MiB of a process in memory; a page that n processes share counts as 1/n in each."""
    try:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    except OSError:
        return 0.0
    sizes = [line.split()[1] for line in text.splitlines() if line.startswith("Pss:")]
    return sum(map(int, sizes)) / 1024
