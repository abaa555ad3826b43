# SPDX-License-Identifier: GPL-2.0-or-later
"""What the parts of `shrinker` share: the lines they print, timed programs, the kernel's counts."""

import os
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from workloads.telling import SAY_S, say

VMSTAT, SLABINFO = Path("/proc/vmstat"), Path("/proc/slabinfo")
# /proc/vmstat, each the sum of the counters of that name in any zone or kind: allocstall_normal …
COUNTED = (
    *("pginodesteal", "kswapd_inodesteal", "slabs_scanned", "allocstall"),
    *("workingset_refault_file", "pgpgin"),
)
NEVER_RAN = 127  # the shell's status of a command that is not there


@dataclass
class Scene:
    """Where the parts work, what they are told, and the figures that they have so far.

    cache: the slab cache of the file system's inodes; problems: what failed, a line each.
    """

    folder: Path
    cache: str
    figures: dict[str, float] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    def fail(self, problem: str) -> None:
        """Say it, and remember it: the run is no result."""
        self.problems.append(problem)
        say(problem)


def counters() -> dict[str, int]:
    """The COUNTED ones of /proc/vmstat so far; pgpgin in KiB, the others events or pages."""
    found: dict[str, int] = {}
    for line in VMSTAT.read_text().splitlines():
        name, value = line.split()
        for one in COUNTED:
            if name == one or (one == "allocstall" and name.startswith("allocstall_")):
                found[one] = found.get(one, 0) + int(value)
    return found


def difference(before: dict[str, int], after: dict[str, int]) -> dict[str, int]:
    """What was counted between; of what both have."""
    return {name: after[name] - before[name] for name in before if name in after}


def cached(cache: str) -> int | None:
    """Objects in use of a slab cache (/proc/slabinfo, active_objs); None if it says nothing."""
    try:
        lines = SLABINFO.read_text().splitlines()
    except OSError:
        return None
    for line in lines:
        if line.startswith(f"{cache} "):
            return int(line.split()[1])
    return None


def inodes_used(folder: Path) -> int:
    """Inodes in use of the file system."""
    found = os.statvfs(folder)
    return found.f_files - found.f_ffree


class Timed(threading.Thread):
    """Runs commands one after the other; stops at the first that fails.

    done: how many ended well; status: of the one that failed, NEVER_RAN of one that did not start;
    faults: major ones, theirs and their children's (wait4).
    """

    def __init__(self, commands: Sequence[Sequence[str]], folder: Path) -> None:
        super().__init__()
        self._commands, self._folder = commands, folder
        self.status = NEVER_RAN
        self.done = self.faults = 0
        self.seconds = 0.0

    def run(self) -> None:
        """Start it with start(), as a thread."""
        began = time.monotonic()
        for command in self._commands:
            try:
                one = subprocess.Popen(
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
            _, ended, usage = os.wait4(one.pid, 0)
            one.returncode = self.status = os.waitstatus_to_exitcode(ended)
            self.faults += usage.ru_majflt
            if self.status:
                break
            self.done += 1
        self.seconds = time.monotonic() - began


def telling(working: Callable[[], bool]) -> Iterator[None]:
    """Once each SAY_S while something works, and soon after it has ended."""
    due = time.monotonic()
    while working():
        if time.monotonic() >= due:
            due += SAY_S
            yield
        time.sleep(0.05)
    yield


def percentile(ordered: Sequence[int], share: float) -> int:
    """The smallest value that so large a share (0 to 1) is not above: the nearest rank."""
    rank = -int(-share * len(ordered) // 1)
    return ordered[max(0, rank - 1)]
