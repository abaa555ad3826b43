# SPDX-License-Identifier: GPL-2.0-or-later
"""Reads the kernel's clocks of a task (taskstats) for a span of time; all in seconds.

The kernel adds a delay to its clock when the delay ends: a wait of 3 s appears as 3 s within a
sample of 0.25 s. The increase of a clock is therefore spread backwards from its sample, over the
time that no other clock has taken, and a span is read by interpolation.
"""

from dataclasses import dataclass

import numpy as np

from analysis.reading.evidence_tables import Task
from analysis.reading.latency_log import Floats

US = 1e6  # microseconds per second
GRACE_S = 0.05  # s by which a wait may exceed the time that the task can have waited
UNSEEN_S = 1.0  # s that a task may exist before its first sample
USED_UP = 0.98  # share of a step, running or runnable, from which on no wait extends over it


@dataclass(frozen=True)
class Spent:
    """A task's seconds in a span: `alive` = `cpu` + `runnable` + `asleep`.

    The other fields overlap with these: `blkio` and `swapin` with `asleep` only, `reclaim` (direct)
    and `compaction` with all three.
    """

    alive: float
    cpu: float = 0.0
    runnable: float = 0.0
    blkio: float = 0.0
    swapin: float = 0.0
    reclaim: float = 0.0
    compaction: float = 0.0

    @property
    def asleep(self) -> float:
        """Seconds neither on a CPU nor waiting for a CPU."""
        return max(0.0, self.alive - self.cpu - self.runnable)


class Clocks:
    """A task's clocks, spread over the time in which the task waited; elapsed seconds."""

    def __init__(self, task: Task) -> None:
        self.stamps = task.stamps
        self.first, self.last = float(task.stamps[0]), float(task.stamps[-1])
        self.usable = len(task.stamps) > 1 and "cpu_us" in task.clocks
        steps = np.diff(self.stamps)
        moved = {name: _moved(values) for name, values in task.clocks.items()}
        self.has = frozenset(name for name in task.clocks)
        # Since 5.17 (a3d5dc908a5f; compact_us came with it) swapin_us is the time to submit a read,
        # and the wait is in blkio_us; before, swapin_us was the wait, and blkio_us was without it.
        self.swapin_apart = "swapin_us" in self.has and "compact_us" not in self.has
        self.sums: dict[str, Floats] = {}
        left = steps.copy()
        for name in ("cpu_us", "rq_us"):
            spent = _laid_out(moved.get(name), left)
            self._keep(name, spent)
            left = left - spent
        if "blkio_us" in moved:
            moved["blkio_us"] = _possible(moved["blkio_us"], left, steps)
        asleep = left.copy()
        for name in ("swapin_us", "blkio_us"):
            spent = _laid_out(moved.get(name), asleep)
            self._keep(name, spent)
            if self.swapin_apart:
                asleep = asleep - spent
        for name in ("freepages_us", "compact_us"):
            self._keep(name, _laid_out(moved.get(name), steps))

    def _keep(self, name: str, spent: Floats) -> None:
        self.sums[name] = np.concatenate(([0.0], np.cumsum(spent)))

    def over(self, begin: float, end: float) -> Spent:
        """The task's seconds from begin to end (elapsed s), both between `first` and `last`."""

        def spent(name: str) -> float:
            values = np.interp((begin, end), self.stamps, self.sums[name])
            return float(values[1] - values[0])

        return Spent(
            float(end - begin),
            spent("cpu_us"),
            spent("rq_us"),
            spent("blkio_us"),
            spent("swapin_us"),
            spent("freepages_us"),
            spent("compact_us"),
        )


def _moved(values: Floats) -> Floats:
    """Seconds by which a cumulative clock (µs) grew in each step; 0 where it could not be read."""
    known = np.isfinite(values)
    places = np.arange(len(values))
    filled = np.interp(places, places[known], values[known])
    return np.maximum(0.0, np.diff(filled)) / US


def _possible(moved: Floats, free: Floats, steps: Floats) -> Floats:
    """`moved` without increases longer than the task can have waited since the last increase.

    `free`: seconds of each step in which the task was neither on a CPU nor runnable; no wait is
    longer. 6.12 and 7.2 add impossible increases to blkio_us (once 141 s within 0.25 s).
    """
    kept = moved.copy()
    room = UNSEEN_S
    lengths = zip(moved.tolist(), free.tolist(), steps.tolist(), strict=True)
    for place, (amount, asleep, step) in enumerate(lengths):
        if asleep <= (1 - USED_UP) * step:
            room = 0.0
        room += asleep
        if amount > room + GRACE_S:
            kept[place] = 0.0
        elif amount > 0:
            room = asleep
    return kept


def _laid_out(moved: Floats | None, room: Floats) -> Floats:
    """The same seconds per step, moved to earlier steps where a step has no room for them."""
    spent = np.zeros(len(room))
    if moved is None:
        return spent
    over = 0.0
    amounts, rooms = moved.tolist(), room.tolist()
    for step in range(len(rooms) - 1, -1, -1):
        due = amounts[step] + over
        take = min(due, max(0.0, rooms[step]))
        spent[step] = take
        over = due - take
    return spent
