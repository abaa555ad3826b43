# SPDX-License-Identifier: GPL-2.0-or-later
"""Where tasks wait: folded stacks, and every task of the machine that sleeps uninterruptibly.

/proc/PID/stack (CONFIG_STACKTRACE, root only) and /proc/PID/wchan; proc(5).
"""

from __future__ import annotations

import os
import time

from monitors.evidence.tasks import Stat, Task, names_in

FRAMES = 24
PACE = ((2.0, 0.25), (10.0, 0.5))  # seconds of silence up to which, seconds between two looks
SLOW = 1.0
MOST_PROCESSES = 400  # held open, and looked at by one scan: more than these take turns
LIST_S = 5.0  # between two looks for processes that are new
SCAN_S = 1.0
SHARE = 50  # a scan may not take more than 1/SHARE of the time, however many processes there are


def pace(silent_s: float) -> float:
    """How long after a look at a stream that is silent for so long the next one comes."""
    for until, step in PACE:
        if silent_s < until:
            return step
    return SLOW


def fold(stack: bytes) -> bytes:
    """/proc/PID/stack as one line: functions, innermost first, joined by ` <- `."""
    found = []
    for line in stack.split(b"\n")[:FRAMES]:
        words = line.split()
        if len(words) > 1 and not words[1].startswith(b"0x"):
            found.append(words[1].partition(b"+")[0])
    return b" <- ".join(found)


def where(task: Task) -> tuple[bytes, bytes]:
    """(wchan, folded stack) of a task; empty if they cannot be read.

    The kernel leaves the scheduler's own functions out of both: wchan is the stack's first.
    """
    try:
        if stack := fold(task.stack()):
            return stack.partition(b" ")[0], stack
    except OSError:
        pass
    try:
        return task.wchan().strip(), b""
    except OSError:
        return b"", b""


class Sleepers:
    """Processes (their first threads) in state D, found by looking at each: dear, so not often."""

    def __init__(self) -> None:
        self._stats: dict[int, int] = {}
        self._listed = self._next = 0.0
        self._turn = 0  # where in the list of all the next look begins, if they take turns

    def close(self) -> None:
        """Close what it holds open."""
        for fd in self._stats.values():
            os.close(fd)
        self._stats.clear()

    def look(self, now: float) -> list[int]:
        """Their pids, or none if the last scan was too short ago; now: monotonic seconds."""
        if now < self._next:
            return []
        began = time.monotonic()
        if began >= self._listed:
            self._listed = began + (LIST_S if self._list() else 0.0)
        found = []
        for pid, fd in list(self._stats.items()):
            try:
                if Stat(os.pread(fd, 256, 0)).state == b"D":
                    found.append(pid)
            except (OSError, IndexError):
                os.close(fd)
                del self._stats[pid]
        ended = time.monotonic()
        self._next = now + max(SCAN_S - 0.1, SHARE * (ended - began))
        return found

    def _list(self) -> bool:
        # Whether these are all processes; else the next ones come next.
        try:
            pids = sorted(int(name) for name in names_in("/proc") if name.isdigit())
        except OSError:  # no descriptor is left
            return False
        everyone = len(pids) <= MOST_PROCESSES
        begin = 0 if everyone else self._turn % len(pids)
        wanted = set((pids[begin:] + pids[:begin])[:MOST_PROCESSES])
        self._turn = begin + MOST_PROCESSES
        for pid in [pid for pid in self._stats if pid not in wanted]:
            os.close(self._stats.pop(pid))
        for pid in wanted.difference(self._stats):
            try:
                self._stats[pid] = os.open(f"/proc/{pid}/stat", os.O_RDONLY | os.O_CLOEXEC)
            except OSError:
                continue
        return everyone


def numbered(comm: bytes) -> list[int]:
    """Pids of the processes of this name with a number behind it (a kswapd for each node)."""
    found = []
    for name in names_in("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/comm", "rb", buffering=0) as handle:
                    head, _, number = handle.read(64).rstrip(b"\n").partition(comm)
                if not head and number.isdigit():
                    found.append(int(name))
            except OSError:
                continue
    return found
