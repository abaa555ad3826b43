# SPDX-License-Identifier: GPL-2.0-or-later
"""Finds which tasks a stall waits for, and divides the stall by what they did.

A gitk reads what its child git writes: while the parent waits in pipe_read(), the stall waits for
the child. The parent's own time counts first; the time in which it waited for another program is
divided by what that program did, and so on.
"""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from analysis.figures.stalls import Stall
from analysis.reading.evidence_tables import Look, Task
from analysis.stall_causes.clocks import Clocks
from analysis.stall_causes.machine import RunCounters
from analysis.stall_causes.stacks import (
    BACKPRESSURE,
    FOLLOW,
    ON_WRITEBACK,
    SOME_IO,
    THROTTLED,
    classify_stack,
    may_hold,
    shown,
)
from analysis.stall_causes.task_time import AMID, NEAR, Seconds, Witness, split

SPAN = 2.0  # s of a stall that are divided together: several samples of stacks and clocks
MOST_SPANS = 20_000  # of a run; spans are longer if its stalls last over eleven hours
MOST_WITNESSES = 16  # of a stall; a stream of a real run has a few tasks
MOST_AT_ONCE = 64  # samples that are compared for a moment
AT_ONCE = 0.3  # s between two samples that count as the same moment
MOST = 0.6  # share (0 to 1) of a span from which on no other task can be meant
DEEPEST = 4  # programs in a chain that wait for each other
FILE_WAITS = ("file_read", "file_write")
DISK_WAITS = ("swap_in", *FILE_WAITS)


@dataclass
class Shares:
    """Seconds of a stall by (cause, task's name, what the task was doing)."""

    of: dict[tuple[str, str, str], float] = field(default_factory=dict)

    def add(self, cause: str, comm: str, amid: str, seconds: float) -> None:
        """Add seconds; negative values are ignored."""
        if seconds > 0:
            key = (cause, comm, amid)
            self.of[key] = self.of.get(key, 0.0) + seconds


class CriticalPath:
    """The evidence of a run, indexed by stream and time."""

    def __init__(
        self,
        tasks: list[Task],
        looks: list[Look],
        machine: RunCounters,
        pids: dict[str, int],
        stalled: float = 0.0,
    ) -> None:
        """looks: in order of time; pids: by stream; stalled: seconds of all stalls to divide."""
        self.machine, self.pids = machine, pids
        self.span = max(SPAN, stalled / MOST_SPANS)
        # Stream -> pid -> the tasks that had this pid in turn.
        self.tasks: dict[str, dict[int, list[tuple[Task, Clocks]]]] = {}
        for task in tasks:
            lives = self.tasks.setdefault(task.stream, {}).setdefault(task.pid, [])
            insort(lives, (task, Clocks(task)), key=lambda life: life[1].first)
        self.looks = _Looks(looks)
        by_stream: dict[str, list[Look]] = {}
        for look in self.looks.all:
            by_stream.setdefault(look.stream, []).append(look)
        self.of_stream = {stream: _Looks(looks) for stream, looks in by_stream.items()}

    def witnesses(self, stall: Stall) -> list[Witness]:
        """The stream's tasks during the stall: its program first, the others as first seen."""
        lives = self.tasks.get(stall.stream, {})
        looks: dict[tuple[int, int], list[Look]] = {}
        of_stream = self.of_stream.get(stall.stream, _Looks([]))
        for look in of_stream.within(stall.begin, stall.end + AT_ONCE):
            place = _life(lives.get(look.pid, []), look.at)
            looks.setdefault((look.pid, place), []).append(look)
        witnesses = []
        for pid, group in lives.items():
            for place, (task, clocks) in enumerate(group):
                seen = looks.pop((pid, place), [])
                if seen or (clocks.first < stall.end and clocks.last > stall.begin):
                    witnesses.append(Witness(task, clocks, seen))
        witnesses += [Witness(None, None, group) for group in looks.values()]
        first = self.pids.get(stall.stream)
        if first is None and witnesses:
            first = min(witness.pid for witness in witnesses)
        if len(witnesses) > MOST_WITNESSES:
            witnesses.sort(key=lambda witness: (witness.pid != first, -len(witness.looks)))
            del witnesses[MOST_WITNESSES:]
        return sorted(witnesses, key=lambda witness: witness.pid != first)

    def shares(self, stall: Stall) -> Shares:
        """Divide the stall by cause; time without evidence is unexplained."""
        shares = Shares()
        witnesses = self.witnesses(stall)
        spans = max(1, round(stall.length / self.span))
        for n in range(spans):
            begin = stall.begin + stall.length * n / spans
            end = stall.begin + stall.length * (n + 1) / spans
            told_so_far = self._span(shares, witnesses, begin, end)
            shares.add("unexplained", "", "", end - begin - told_so_far)
        return shares

    def between(self, stall: Stall, edges: Sequence[float]) -> Iterator[tuple[int, Shares]]:
        """Divide its parts between the edges (elapsed s, in order): index of the part, shares."""
        witnesses = self.witnesses(stall)
        first = max(0, bisect_right(edges, stall.begin) - 1)
        for place in range(first, len(edges) - 1):
            begin, end = max(edges[place], stall.begin), min(edges[place + 1], stall.end)
            if edges[place] >= stall.end:
                return
            if end > begin:
                shares = Shares()
                told_so_far = self._span(shares, witnesses, begin, end)
                shares.add("unexplained", "", "", end - begin - told_so_far)
                yield place, shares

    def _span(self, shares: Shares, witnesses: list[Witness], begin: float, end: float) -> float:
        """Divide a span (elapsed s) by cause; returns the seconds that are explained."""
        parts = [(witness, split(witness, begin, end)) for witness in witnesses]
        line = [(witness, spent, spent.without((FOLLOW, BACKPRESSURE))) for witness, spent in parts]
        left, done = end - begin, 0.0
        for depth in range(min(DEEPEST, len(line))):
            # The program first; then the task with the most time of its own.
            place = max(range(len(line)), key=lambda n: line[n][2].sum()) if depth else 0
            witness, spent, own = line.pop(place)
            factor = min(1.0, left / own.sum()) if own.sum() > 0 else 0.0
            self._name(shares, own.scaled(factor), witness, begin, end)
            done += own.sum() * factor
            left = min(left - own.sum() * factor, spent.sum((FOLLOW,)))
            if left <= 1e-9:
                break
        return done

    def _name(
        self, shares: Shares, seconds: Seconds, witness: Witness, begin: float, end: float
    ) -> None:
        """Turn kinds into causes, with the machine's counters of the span (elapsed s)."""
        compacted = self._compacted(seconds, witness, begin, end)
        named = []
        for (kind, amid), amount in seconds.of.items():
            if kind == "cpu_running":
                shares.add("compaction", witness.comm, amid, compacted)
                amount -= compacted
            named += [(amid, *pair) for pair in self._causes(kind, amount, begin, end)]
        waits = FILE_WAITS if self.machine.on_zram else DISK_WAITS
        waited = sum(part for _, cause, part in named if cause in waits)
        crypt = self.machine.crypt_alone(begin, end, waited) / waited if waited else 0.0
        for amid, cause, part in named:
            if cause == "lock":
                self._holders(shares, witness, part, begin, end)
            elif cause in waits:
                shares.add("dm_crypt", witness.comm, AMID[cause], part * crypt)
                shares.add(cause, witness.comm, amid, part * (1 - crypt))
            else:
                shares.add(cause, witness.comm, amid, part)

    def _compacted(self, seconds: Seconds, witness: Witness, begin: float, end: float) -> float:
        """Seconds on a CPU in compaction that no clock of the task counts.

        Before 5.17 no clock counts compaction; compaction through /proc is never counted. The
        kernel's sum counts all of it. The sum belongs to this task if a sample near the span shows
        it in compaction, or if no other task can be meant: the task was on a CPU for most of the
        span, compaction ran for most of the span, and kcompactd did nothing.
        """
        whole = self.machine.moved("compaction_us", begin, end)
        running = seconds.sum(("cpu_running",))
        if not whole or not running:
            return 0.0
        compacting = whole / 1e6 - seconds.sum(("compaction",))
        clocked = witness.clocks is not None and "compact_us" in witness.clocks.has
        kinds = ("asked",) if clocked else ("asked", "direct")
        near = witness.seen_in(begin - NEAR, end + NEAR)
        seen = any(look.stack_class.compacts in kinds for look in near)
        daemon = self.machine.moved("compact_daemon_migrate_scanned", begin, end, "vmstat")
        most = MOST * (end - begin)
        alone = daemon == 0 and min(running, compacting) >= most
        return max(0.0, min(running, compacting)) if seen or alone else 0.0

    def _causes(
        self, kind: str, amount: float, begin: float, end: float
    ) -> list[tuple[str, float]]:
        if kind in (THROTTLED, ON_WRITEBACK):
            share = self.machine.on_writeback(begin, end)
            if share is None:
                share = 1.0 if kind == ON_WRITEBACK else 0.0
            return [
                ("reclaim_writeback", amount * share),
                ("reclaim_noprogress", amount * (1 - share)),
            ]
        if kind == SOME_IO:
            share_of_swap = self.machine.swap_share(begin, end)
            if share_of_swap is None:
                return [("unexplained", amount)]
            return [
                ("swap_in", amount * share_of_swap),
                ("file_read", amount * (1 - share_of_swap)),
            ]
        return [(kind, amount)]

    def _holders(
        self, shares: Shares, witness: Witness, seconds: float, begin: float, end: float
    ) -> None:
        """Divide the seconds spent waiting for a lock by what its likely holder was doing."""
        held: dict[str, int] = {}
        for look in _Looks(witness.looks).within(begin - AT_ONCE, end + AT_ONCE)[:MOST_AT_ONCE]:
            if classify_stack(look.stack, look.wchan, look.state).kind == "lock":
                amid = self._holder(look)
                held[amid] = held.get(amid, 0) + 1
        total = sum(held.values())
        for amid, number in held.items() or [("", 1)]:
            shares.add("lock", witness.comm, amid, seconds * number / max(1, total))

    def _holder(self, look: Look) -> str:
        """What another task was doing at that moment; tasks of the same stream take precedence."""
        waiting = shown(look.stack)
        others = [
            (other.stream != look.stream, abs(other.at - look.at), AMID[kind])
            for other in self.looks.within(look.at - AT_ONCE, look.at + AT_ONCE)[:MOST_AT_ONCE]
            if other.pid != look.pid
            and may_hold(other.stack, waiting)
            and (kind := classify_stack(other.stack, other.wchan, other.state).kind) in AMID
            and kind != "lock"
        ]
        return f"its holder in {min(others)[2]}" if others else ""


class _Looks:
    """Samples in order of time."""

    def __init__(self, looks: list[Look]) -> None:
        self.all = looks

    def within(self, begin: float, end: float) -> list[Look]:
        """The samples of the span (elapsed s)."""
        first = bisect_left(self.all, begin, key=lambda look: look.at)
        return self.all[first : bisect_right(self.all, end, key=lambda look: look.at)]


def _life(lives: list[tuple[Task, Clocks]], at: float) -> int:
    """The index of the task, of those that had this pid in turn, that existed at `at` (elapsed s)
    or nearest to it."""
    after = bisect_right(lives, at, key=lambda life: life[1].first)
    if after in (0, len(lives)):
        return max(0, after - 1)
    return after if lives[after][1].first - at < at - lives[after - 1][1].last else after - 1
