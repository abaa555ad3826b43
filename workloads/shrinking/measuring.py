# SPDX-License-Identifier: GPL-2.0-or-later
"""Lines, figures, timed programs and kernel counters for all parts of `shrinker`."""

import os
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from workloads.load_output import SAY_S, say

VMSTAT, SLABINFO = Path("/proc/vmstat"), Path("/proc/slabinfo")
# Names in /proc/vmstat; allocstall is the sum over all zones: allocstall_normal …
COUNTED = (
    *("pginodesteal", "kswapd_inodesteal", "slabs_scanned", "allocstall"),
    *("workingset_refault_file", "pgpgin"),
)
NEVER_RAN = 127  # the shell's status for a missing command


@dataclass
class Scene:
    """Where the parts work, and their figures and problems so far.

    cache: the slab cache of the file system's inodes; problems: one line per failure.
    """

    folder: Path
    cache: str
    figures: dict[str, float] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    def fail(self, problem: str) -> None:
        """Print a problem and remember it: the run has failed."""
        self.problems.append(problem)
        say(problem)


def counters() -> dict[str, int]:
    """The COUNTED rows of /proc/vmstat so far; pgpgin in KiB, the others events or pages."""
    totals: dict[str, int] = {}
    for line in VMSTAT.read_text().splitlines():
        name, value = line.split()
        if name.startswith("allocstall_"):
            name = "allocstall"
        if name in COUNTED:
            totals[name] = totals.get(name, 0) + int(value)
    return totals


def difference(before: dict[str, int], after: dict[str, int]) -> dict[str, int]:
    """The growth of each counter that is in both, in the counter's own unit."""
    return {name: after[name] - before[name] for name in before if name in after}


def cached(cache: str) -> int | None:
    """The number of objects in use in a slab cache (/proc/slabinfo, active_objs).

    None if unknown.
    """
    try:
        lines = SLABINFO.read_text().splitlines()
    except OSError:
        return None
    for line in lines:
        if line.startswith(f"{cache} "):
            return int(line.split()[1])
    return None


def inodes_used(folder: Path) -> int:
    """The number of inodes in use in the file system that holds folder."""
    status = os.statvfs(folder)
    return status.f_files - status.f_ffree


class Timed(threading.Thread):
    """Runs commands one after the other; stops at the first failure.

    done: how many succeeded; status: that of the failed command, NEVER_RAN if it did not start;
    faults: the major faults of all commands and their children (wait4); seconds: for all.
    """

    def __init__(self, commands: Sequence[Sequence[str]], folder: Path) -> None:
        super().__init__()
        self._commands, self._folder = commands, folder
        self.status = NEVER_RAN
        self.done = self.faults = 0
        self.seconds = 0.0

    def run(self) -> None:
        """Run the commands; call start(), which does this in a thread."""
        began = time.monotonic()
        for command in self._commands:
            try:
                process = subprocess.Popen(
                    command,
                    cwd=self._folder,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                )
            except OSError as error:
                say(f"{command[0]}: {error.strerror}")
                self.status = NEVER_RAN
                break
            _, ended, usage = os.wait4(process.pid, 0)
            process.returncode = self.status = os.waitstatus_to_exitcode(ended)
            self.faults += usage.ru_majflt
            if self.status:
                break
            self.done += 1
        self.seconds = time.monotonic() - began


def ticks_while(working: Callable[[], bool]) -> Iterator[None]:
    """Yield every SAY_S seconds while working() is true, and once soon after."""
    due = time.monotonic()
    while working():
        if time.monotonic() >= due:
            due += SAY_S
            yield
        time.sleep(0.05)
    yield


def percentile(ordered: Sequence[int], share: float) -> int:
    """The nearest-rank percentile, in the values' unit; share: from 0 to 1."""
    rank = -int(-share * len(ordered) // 1)
    return ordered[max(0, rank - 1)]
