# SPDX-License-Identifier: GPL-2.0-or-later
"""Divides a task's time in a span by kind: its clocks show how long, its stacks show what.

The seconds of all kinds add up to the span (as far as the task was alive). If both sources are
there, both are used: the clocks bound how long a task ran, waited for a CPU and waited for a block
device; the samples of its stack divide these times by what the task was doing.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from analysis.reading.evidence_tables import Look, Task
from analysis.stall_causes.clocks import Clocks, Spent
from analysis.stall_causes.stacks import (
    FOLLOW,
    NOTHING,
    RECLAIM,
    SOME_IO,
    StackClass,
    classify_stack,
)

STOPPED = "Tt"
RUNNABLE = "R"
AMID = {
    "swap_in": "swap-in",
    "file_read": "file read",
    "file_write": "file write",
    "dm_crypt": "dm-crypt",
    "compaction": "compaction",
    "lock": "a lock",
    **dict.fromkeys(RECLAIM, "reclaim"),
}
NEAR = 2.0  # s within which samples of a neighbouring span replace missing samples


@dataclass
class Seconds:
    """Seconds by (kind, what the task was doing; `""`: nothing in particular)."""

    of: dict[tuple[str, str], float] = field(default_factory=dict)

    def add(self, kind: str, seconds: float, amid: str = "") -> None:
        """Add seconds; negative values are ignored."""
        if seconds > 0:
            key = (kind, amid)
            self.of[key] = self.of.get(key, 0.0) + seconds

    def sum(self, kinds: Iterable[str] | None = None) -> float:
        """Seconds of these kinds, or of all."""
        wanted = None if kinds is None else set(kinds)
        return sum(s for (kind, _), s in self.of.items() if wanted is None or kind in wanted)

    def scaled(self, factor: float) -> "Seconds":
        """These seconds, multiplied by a factor."""
        return Seconds({key: seconds * factor for key, seconds in self.of.items()})

    def without(self, kinds: Iterable[str]) -> "Seconds":
        """These seconds, without some kinds."""
        left_out = set(kinds)
        return Seconds({key: s for key, s in self.of.items() if key[0] not in left_out})


@dataclass(frozen=True)
class WeightedSample:
    """A sample, and the time that it represents: `begin` to `end` (elapsed s)."""

    begin: float
    end: float
    state: str
    stack_class: StackClass
    readable: bool


class Witness:
    """A task with its clocks and its samples during a stall."""

    def __init__(self, task: Task | None, clocks: Clocks | None, looks: list[Look]) -> None:
        self.task, self.clocks, self.looks = task, clocks, looks
        self.comm = task.comm if task else looks[-1].comm
        self.pid = task.pid if task else looks[-1].pid
        self.seen = _territories(looks)
        self.readable = any(seen.readable for seen in self.seen)

    def lived(self, begin: float, end: float) -> tuple[float, float]:
        """The part of the span in which the task is known to have existed; elapsed s."""
        if self.task is not None and len(self.task.stamps):
            first, last = float(self.task.stamps[0]), float(self.task.stamps[-1])
        else:
            first, last = self.looks[0].at, self.looks[-1].at
        if self.looks:
            first, last = min(first, self.looks[0].at), max(last, self.looks[-1].at)
        # It may have existed before its first and after its last sample.
        return max(begin, first - NEAR), min(end, last + NEAR)

    def seen_in(self, begin: float, end: float) -> list[WeightedSample]:
        """The samples that represent a part of the span (elapsed s)."""
        first = bisect_right(self.seen, begin, key=lambda seen: seen.end)
        return self.seen[first : bisect_left(self.seen, end, key=lambda seen: seen.begin)]

    def states(self, begin: float, end: float) -> str:
        """Its states in the span (elapsed s), a letter for each sample of stack or clocks."""
        states = [seen.state for seen in self.seen_in(begin, end)]
        if self.task is not None:
            low, high = self.task.stamps.searchsorted((begin, end))
            states += self.task.states[low:high]
        return "".join(states)


def split(witness: Witness, begin: float, end: float) -> Seconds:
    """Divide the task's time from begin to end (elapsed s) by kind."""
    seconds = Seconds()
    begin, end = witness.lived(begin, end)
    if end <= begin:
        return seconds
    clocks = witness.clocks
    if clocks is None or not clocks.usable:
        _by_looks(seconds, witness, begin, end)
        return seconds
    first = min(max(begin, clocks.first), end)
    last = max(min(end, clocks.last), first)
    if last > first:
        _by_both(seconds, witness, first, last, clocks.over(first, last))
    _by_looks(seconds, witness, begin, first)
    _by_looks(seconds, witness, last, end)
    return seconds


def _by_looks(by_kind: Seconds, witness: Witness, begin: float, end: float) -> None:
    """Without clocks: the samples, runnable ones included, divide the whole span."""
    left = end - begin
    for seen, seconds in _within(witness, begin, end):
        left -= seconds
        if seen.state != RUNNABLE:
            by_kind.add(_kind(seen), seconds)
        elif seen.readable:  # no task on a CPU shows its stack
            by_kind.add("cpu_starved", seconds, _amid(seen))
        else:
            by_kind.add("cpu_running" if witness.readable else "unexplained", seconds)
    if left > 0:
        _by_states(by_kind, witness, begin, end, left)


def _by_both(by_kind: Seconds, witness: Witness, begin: float, end: float, spent: Spent) -> None:
    local = _within(witness, begin, end)
    asleep = Seconds()
    _asleep(asleep, witness, local, begin, end, spent)
    running = spent.cpu + spent.runnable
    # Direct reclaim and compaction spent the rest of their time on a CPU or waiting for a CPU.
    compacting = max(0.0, spent.compaction - asleep.sum(("compaction",)))
    counted = RECLAIM - {"reclaim_kswapd"}
    in_reclaim = sum(s for (k, amid), s in asleep.of.items() if k in counted or amid == "reclaim")
    reclaiming = max(0.0, spent.reclaim - in_reclaim)
    scale = min(1.0, running / (compacting + reclaiming)) if compacting + reclaiming > 0 else 1.0
    compacting, reclaiming = compacting * scale, reclaiming * scale
    share = spent.cpu / running if running > 0 else 0.0
    by_kind.add("compaction", compacting * share)
    by_kind.add("reclaim_scan", reclaiming * share)
    _on_cpu(by_kind, local, spent.cpu - (compacting + reclaiming) * share)
    by_kind.add("cpu_starved", compacting * (1 - share), "compaction")
    by_kind.add("cpu_starved", reclaiming * (1 - share), "reclaim")
    _starved(by_kind, local, spent.runnable - (compacting + reclaiming) * (1 - share))
    for (kind, amid), seconds in asleep.of.items():
        by_kind.add(kind, seconds, amid)


def _on_cpu(by_kind: Seconds, local: list[tuple[WeightedSample, float]], seconds: float) -> None:
    """The rest of the time on a CPU.

    Only direct compaction and reclaim have clocks. A write to a file of /proc or of a cgroup can
    also start both; runnable samples show that.
    """
    runnable = [(seen, weight) for seen, weight in local if seen.state == RUNNABLE]
    total = sum(weight for _, weight in runnable)
    left = seconds
    for seen, weight in runnable:
        if seen.stack_class.kind in ("compaction", "reclaim_scan"):
            by_kind.add(seen.stack_class.kind, seconds * weight / total)
            left -= seconds * weight / total
    by_kind.add("cpu_running", left)


def _starved(by_kind: Seconds, local: list[tuple[WeightedSample, float]], seconds: float) -> None:
    """Divide the wait for a CPU by what runnable samples were doing; reclaim is counted apart."""
    waiting = [
        (_amid(seen), weight)
        for seen, weight in local
        if seen.state == RUNNABLE and seen.readable  # no task on a CPU shows its stack
    ]
    looks = [(amid if amid not in ("reclaim", "compaction") else "", w) for amid, w in waiting]
    total = sum(weight for _, weight in looks)
    for amid, weight in looks or [("", 1.0)]:
        by_kind.add("cpu_starved", seconds * (weight / total if total > 0 else 1.0), amid)


def _asleep(
    by_kind: Seconds,
    witness: Witness,
    local: list[tuple[WeightedSample, float]],
    begin: float,
    end: float,
    spent: Spent,
) -> None:
    """Divide the sleep of a span: block IO by the samples in IO, the rest by the others."""
    sleep = spent.asleep
    if sleep <= 0:
        return
    clocks = witness.clocks
    if clocks is not None and clocks.swapin_apart:
        swapin = min(sleep, spent.swapin)
        blkio = min(sleep - swapin, spent.blkio)
        groups: list[tuple[float, Callable[[StackClass], bool], str]] = [
            (swapin, lambda stack: stack.io and stack.swapping, "swap_in"),
            (blkio, lambda stack: stack.io and not stack.swapping, SOME_IO),
        ]
    else:
        blkio = min(sleep, spent.blkio)
        swapin = 0.0
        groups = [(blkio, lambda stack: stack.io, SOME_IO)]
    near = _within(witness, begin - NEAR, end + NEAR)
    for seconds, fits, otherwise in groups:
        _divide(by_kind, seconds, [local, near], fits, otherwise)
    rest = sleep - swapin - blkio
    if rest <= 0:
        return
    sleeping = [(seen, weight) for seen, weight in local if seen.state != RUNNABLE]
    if not sleeping:
        _by_states(by_kind, witness, begin, end, rest)
        return
    # The rest was no IO, unless a delay has not ended: its clock then stands, only samples show it.
    other = [(seen, weight) for seen, weight in sleeping if not seen.stack_class.io]
    whole = sum(weight for _, weight in sleeping)
    due_other = sleep * sum(weight for _, weight in other) / whole
    due_io = max(0.0, sleep - due_other - swapin - blkio)
    share = due_other / (due_other + due_io) if due_other + due_io > 0 else 0.0
    _divide(by_kind, rest * share, [other], lambda _: True, "unexplained")
    _divide(by_kind, rest * (1 - share), [sleeping], lambda stack: stack.io, "unexplained")


def _divide(
    by_kind: Seconds,
    seconds: float,
    choices: list[list[tuple[WeightedSample, float]]],
    fits: Callable[[StackClass], bool],
    otherwise: str,
) -> None:
    """Divide seconds by the sleeping samples that fit, from the first choice that has any."""
    if seconds <= 0:
        return
    for looks in choices:
        fitting = [
            (seen, w) for seen, w in looks if seen.state != RUNNABLE and fits(seen.stack_class)
        ]
        total = sum(weight for _, weight in fitting)
        if total > 0:
            for seen, weight in fitting:
                kind = _kind(seen)
                amid = "reclaim" if seen.stack_class.reclaiming and kind not in RECLAIM else ""
                by_kind.add(kind, seconds * weight / total, amid)
            return
    by_kind.add(otherwise, seconds)


def _by_states(
    by_kind: Seconds, witness: Witness, begin: float, end: float, seconds: float
) -> None:
    """Divide seconds by states only; always runnable without clocks means starved of a CPU."""
    states = witness.states(begin, end)
    sleeping = [state for state in states if state != RUNNABLE]
    if not states:
        by_kind.add("unexplained", seconds)
        return
    if not sleeping:
        by_kind.add("cpu_starved" if len(states) > 1 else "unexplained", seconds)
        return
    for state in sleeping:
        share = seconds / len(sleeping)
        if state in STOPPED:
            by_kind.add("stopped", share)
        else:
            # Interruptible: usually it waits for another program (critical_path.py finds which).
            by_kind.add(FOLLOW if state == "S" else "unexplained", share)


def _kind(seen: WeightedSample) -> str:
    """The kind of a sample of a sleeping task."""
    if seen.state in STOPPED:
        return "stopped"
    if seen.stack_class.kind == NOTHING:
        return FOLLOW if seen.state == "S" and not seen.readable else "unexplained"
    return seen.stack_class.kind


def _amid(seen: WeightedSample) -> str:
    """What a runnable task was doing; "" in a lock's function, because it does not wait."""
    return "" if seen.stack_class.kind == "lock" else AMID.get(seen.stack_class.kind, "")


def _territories(looks: list[Look]) -> list[WeightedSample]:
    """Each sample represents the time within NEAR that is closer to it than to any other."""
    seen = []
    for place, look in enumerate(looks):
        begin, end = look.at - NEAR, look.at + NEAR
        if place:
            begin = max(begin, (looks[place - 1].at + look.at) / 2)
        if place + 1 < len(looks):
            end = min(end, (look.at + looks[place + 1].at) / 2)
        stack = classify_stack(look.stack, look.wchan, look.state)
        seen.append(WeightedSample(begin, end, look.state, stack, bool(look.stack)))
    return seen


def _within(witness: Witness, begin: float, end: float) -> list[tuple[WeightedSample, float]]:
    """The samples whose time overlaps the span, and by how many seconds."""
    overlaps = []
    for seen in witness.seen_in(begin, end):
        overlap = min(seen.end, end) - max(seen.begin, begin)
        if overlap > 0:
            overlaps.append((seen, overlap))
    return overlaps
