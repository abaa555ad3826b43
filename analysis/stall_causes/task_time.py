# SPDX-License-Identifier: GPL-2.0-or-later
"""What one task did in one span of time: its clocks say how long, its stacks say what in.

The seconds of all kinds add up to the span (as far as the task was alive). Neither source is
believed alone where both speak: the clocks bound how long a task ran, waited for a CPU and waited
for a block device; the looks divide each of these by what the task was about.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from analysis.reading.evidence_tables import Look, Task
from analysis.stall_causes.clocks import Clocks, Spent
from analysis.stall_causes.stacks import FOLLOW, NOTHING, RECLAIM, SOME_IO, Told, told

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
NEAR = 2.0  # seconds within which another span's looks stand in for those that are missing


@dataclass
class Seconds:
    """Seconds by kind and amid what (`""`: nothing in particular)."""

    of: dict[tuple[str, str], float] = field(default_factory=dict)

    def add(self, kind: str, seconds: float, amid: str = "") -> None:
        """Add seconds; none of less than nothing."""
        if seconds > 0:
            key = (kind, amid)
            self.of[key] = self.of.get(key, 0.0) + seconds

    def sum(self, kinds: Iterable[str] | None = None) -> float:
        """Seconds of these kinds, or of all."""
        wanted = None if kinds is None else set(kinds)
        return sum(s for (kind, _), s in self.of.items() if wanted is None or kind in wanted)

    def scaled(self, factor: float) -> "Seconds":
        """The same, by a factor."""
        return Seconds({key: seconds * factor for key, seconds in self.of.items()})

    def without(self, kinds: Iterable[str]) -> "Seconds":
        """The same, some kinds left out."""
        left_out = set(kinds)
        return Seconds({key: s for key, s in self.of.items() if key[0] not in left_out})


@dataclass(frozen=True)
class Seen:
    """One look with its place in time: it stands for `begin` to `end`."""

    begin: float
    end: float
    state: str
    told: Told
    readable: bool


class Witness:
    """A task with all that is known of it within one stall."""

    def __init__(self, task: Task | None, clocks: Clocks | None, looks: list[Look]) -> None:
        self.task, self.clocks, self.looks = task, clocks, looks
        self.comm = task.comm if task else looks[-1].comm
        self.pid = task.pid if task else looks[-1].pid
        self.seen = _territories(looks)
        self.readable = any(seen.readable for seen in self.seen)

    def lived(self, begin: float, end: float) -> tuple[float, float]:
        """The part of the span in which it was there, as far as is known."""
        if self.task is not None and len(self.task.stamps):
            first, last = float(self.task.stamps[0]), float(self.task.stamps[-1])
        else:
            first, last = self.looks[0].at, self.looks[-1].at
        if self.looks:
            first, last = min(first, self.looks[0].at), max(last, self.looks[-1].at)
        # It was there before it was first seen, and after it was seen last: a sample's distance.
        return max(begin, first - NEAR), min(end, last + NEAR)

    def seen_in(self, begin: float, end: float) -> list[Seen]:
        """Those that stand for a part of the span."""
        first = bisect_right(self.seen, begin, key=lambda seen: seen.end)
        return self.seen[first : bisect_left(self.seen, end, key=lambda seen: seen.begin)]

    def states(self, begin: float, end: float) -> str:
        """Its states at the samples and looks in the span."""
        states = [seen.state for seen in self.seen_in(begin, end)]
        if self.task is not None:
            low, high = self.task.stamps.searchsorted((begin, end))
            states += self.task.states[low:high]
        return "".join(states)


def split(witness: Witness, begin: float, end: float) -> Seconds:
    """What the task did from begin to end."""
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


def _by_looks(found: Seconds, witness: Witness, begin: float, end: float) -> None:
    """No clocks: the looks divide the whole span, the runnable ones too."""
    left = end - begin
    for seen, seconds in _within(witness, begin, end):
        left -= seconds
        if seen.state != RUNNABLE:
            found.add(_kind(seen), seconds)
        elif seen.readable:  # no task on a CPU shows its stack
            found.add("cpu_starved", seconds, _amid(seen))
        else:
            found.add("cpu_running" if witness.readable else "unexplained", seconds)
    if left > 0:
        _by_states(found, witness, begin, end, left)


def _by_both(found: Seconds, witness: Witness, begin: float, end: float, spent: Spent) -> None:
    local = _within(witness, begin, end)
    asleep = Seconds()
    _asleep(asleep, witness, local, begin, end, spent)
    running = spent.cpu + spent.runnable
    # What direct reclaim and compaction took beyond their sleep they were on a CPU, or due for one.
    compacting = max(0.0, spent.compaction - asleep.sum(("compaction",)))
    counted = RECLAIM - {"reclaim_kswapd"}
    in_reclaim = sum(s for (k, amid), s in asleep.of.items() if k in counted or amid == "reclaim")
    reclaiming = max(0.0, spent.reclaim - in_reclaim)
    scale = min(1.0, running / (compacting + reclaiming)) if compacting + reclaiming > 0 else 1.0
    compacting, reclaiming = compacting * scale, reclaiming * scale
    share = spent.cpu / running if running > 0 else 0.0
    found.add("compaction", compacting * share)
    found.add("reclaim_scan", reclaiming * share)
    _on_cpu(found, local, spent.cpu - (compacting + reclaiming) * share)
    found.add("cpu_starved", compacting * (1 - share), "compaction")
    found.add("cpu_starved", reclaiming * (1 - share), "reclaim")
    _starved(found, local, spent.runnable - (compacting + reclaiming) * (1 - share))
    for (kind, amid), seconds in asleep.of.items():
        found.add(kind, seconds, amid)


def _on_cpu(found: Seconds, local: list[tuple[Seen, float]], seconds: float) -> None:
    """The rest of the time on a CPU: only direct compaction and reclaim have clocks, but both can
    be asked for by a write to a file of /proc or of a cgroup. Then runnable looks tell."""
    runnable = [(seen, weight) for seen, weight in local if seen.state == RUNNABLE]
    total = sum(weight for _, weight in runnable)
    left = seconds
    for seen, weight in runnable:
        if seen.told.kind in ("compaction", "reclaim_scan"):
            found.add(seen.told.kind, seconds * weight / total)
            left -= seconds * weight / total
    found.add("cpu_running", left)


def _starved(found: Seconds, local: list[tuple[Seen, float]], seconds: float) -> None:
    """The wait for a CPU by what the runnable looks were amid; reclaim's share is known."""
    waiting = [
        (_amid(seen), weight)
        for seen, weight in local
        if seen.state == RUNNABLE and seen.readable  # no task on a CPU shows its stack
    ]
    looks = [(amid if amid not in ("reclaim", "compaction") else "", w) for amid, w in waiting]
    total = sum(weight for _, weight in looks)
    for amid, weight in looks or [("", 1.0)]:
        found.add("cpu_starved", seconds * (weight / total if total > 0 else 1.0), amid)


def _asleep(
    found: Seconds,
    witness: Witness,
    local: list[tuple[Seen, float]],
    begin: float,
    end: float,
    spent: Spent,
) -> None:
    """The sleep of a span: that in block IO by the looks at IO, the rest by the others."""
    sleep = spent.asleep
    if sleep <= 0:
        return
    clocks = witness.clocks
    if clocks is not None and clocks.swapin_apart:
        swapin = min(sleep, spent.swapin)
        blkio = min(sleep - swapin, spent.blkio)
        groups: list[tuple[float, Callable[[Told], bool], str]] = [
            (swapin, lambda stack: stack.io and stack.swapping, "swap_in"),
            (blkio, lambda stack: stack.io and not stack.swapping, SOME_IO),
        ]
    else:
        blkio = min(sleep, spent.blkio)
        swapin = 0.0
        groups = [(blkio, lambda stack: stack.io, SOME_IO)]
    near = _within(witness, begin - NEAR, end + NEAR)
    for seconds, fits, otherwise in groups:
        _divide(found, seconds, [local, near], fits, otherwise)
    rest = sleep - swapin - blkio
    if rest <= 0:
        return
    sleeping = [(seen, weight) for seen, weight in local if seen.state != RUNNABLE]
    if not sleeping:
        _by_states(found, witness, begin, end, rest)
        return
    # The rest was no IO, unless a delay is not over: then its clock stands, and only looks show it.
    other = [(seen, weight) for seen, weight in sleeping if not seen.told.io]
    whole = sum(weight for _, weight in sleeping)
    due_other = sleep * sum(weight for _, weight in other) / whole
    due_io = max(0.0, sleep - due_other - swapin - blkio)
    share = due_other / (due_other + due_io) if due_other + due_io > 0 else 0.0
    _divide(found, rest * share, [other], lambda _: True, "unexplained")
    _divide(found, rest * (1 - share), [sleeping], lambda stack: stack.io, "unexplained")


def _divide(
    found: Seconds,
    seconds: float,
    choices: list[list[tuple[Seen, float]]],
    fits: Callable[[Told], bool],
    otherwise: str,
) -> None:
    """Seconds by the sleeping looks that fit, of the first of choices that has any."""
    if seconds <= 0:
        return
    for looks in choices:
        fitting = [(seen, w) for seen, w in looks if seen.state != RUNNABLE and fits(seen.told)]
        total = sum(weight for _, weight in fitting)
        if total > 0:
            for seen, weight in fitting:
                kind = _kind(seen)
                amid = "reclaim" if seen.told.reclaiming and kind not in RECLAIM else ""
                found.add(kind, seconds * weight / total, amid)
            return
    found.add(otherwise, seconds)


def _by_states(found: Seconds, witness: Witness, begin: float, end: float, seconds: float) -> None:
    """No stack tells: a state may. Always runnable while no clock moves is starved of a CPU."""
    states = witness.states(begin, end)
    sleeping = [state for state in states if state != RUNNABLE]
    if not states:
        found.add("unexplained", seconds)
        return
    if not sleeping:
        found.add("cpu_starved" if len(states) > 1 else "unexplained", seconds)
        return
    for state in sleeping:
        share = seconds / len(sleeping)
        if state in STOPPED:
            found.add("stopped", share)
        else:
            # Interruptible: as a rule it waits for another program (critical_path.py: whom).
            found.add(FOLLOW if state == "S" else "unexplained", share)


def _kind(seen: Seen) -> str:
    """The kind of a sleeping look."""
    if seen.state in STOPPED:
        return "stopped"
    if seen.told.kind == NOTHING:
        return FOLLOW if seen.state == "S" and not seen.readable else "unexplained"
    return seen.told.kind


def _amid(seen: Seen) -> str:
    """What a runnable task was amid: it may have passed a lock's function, it waits for none."""
    return "" if seen.told.kind == "lock" else AMID.get(seen.told.kind, "")


def _territories(looks: list[Look]) -> list[Seen]:
    """Each look stands for the time near it that is nearer to it than to any other."""
    seen = []
    for place, look in enumerate(looks):
        begin, end = look.at - NEAR, look.at + NEAR
        if place:
            begin = max(begin, (looks[place - 1].at + look.at) / 2)
        if place + 1 < len(looks):
            end = min(end, (look.at + looks[place + 1].at) / 2)
        stack = told(look.stack, look.wchan, look.state)
        seen.append(Seen(begin, end, look.state, stack, bool(look.stack)))
    return seen


def _within(witness: Witness, begin: float, end: float) -> list[tuple[Seen, float]]:
    """The looks whose territory overlaps the span, and by how many seconds."""
    overlaps = []
    for seen in witness.seen_in(begin, end):
        overlap = min(seen.end, end) - max(seen.begin, begin)
        if overlap > 0:
            overlaps.append((seen, overlap))
    return overlaps
