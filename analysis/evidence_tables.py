# SPDX-License-Identifier: GPL-2.0-or-later
"""The evidence of a run: tasks.tsv, blocked.tsv, trace.tsv, allocfail.tsv, reclaim.tsv.

docs/FORMAT.md has every column. Damage never raises: it is named in `problems`, a line for each
kind of it. A cell that is empty or no number is NaN; a column that is not there is no clock.
"""

import functools
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from analysis.files import read_file
from analysis.records import Floats, count, whole_lines
from analysis.tables import DIGITS, NUMBER, STAMP, Table, parse_table

CLOCKS = (
    *("cpu_us", "rq_us", "blkio_us", "swapin_us", "freepages_us", "thrashing_us", "compact_us"),
    *("wpcopy_us", "irq_us", "majflt", "minflt"),
)
BETWEEN_FRAMES = " <- "
MOST_FRAMES = 64
AT_ONCE_S = 0.25  # a stamp may go back by less: two writers of one moment
SUFFIX = re.compile(r"(\.(isra|constprop|part|cold|llvm|lto_priv)(\.\d+)*)+$")
SIGNED = re.compile(rb"-?\d{1,9}(\.\d{1,9})?")
WHOLE = re.compile(rb"-?\d{1,9}")
NAN = float("nan")
HEX = re.compile(rb"(0[xX])?[0-9a-fA-F]{1,16}")


@dataclass
class Task:
    """One task of a stream (`-`: of none): its states and cumulative clocks (µs) at `stamps`."""

    stream: str
    pid: int
    comm: str
    stamps: Floats
    states: str
    clocks: dict[str, Floats]


@dataclass(frozen=True)
class Look:
    """One look at a task: what it was in, functions innermost first (none: in user space)."""

    at: float
    stream: str
    pid: int
    comm: str
    state: str
    wchan: str
    stack: tuple[str, ...]


@dataclass(frozen=True)
class Failure:
    """Page allocations that failed within a second, all alike; `gfp` is the kernel's bit mask."""

    at: float
    count: int
    pid: int
    comm: str
    order: int
    gfp: int
    stack: tuple[str, ...]


@dataclass(frozen=True)
class Reclaimer:
    """What one task did in direct reclaim in the whole run; None: not available."""

    pid: int
    comm: str
    reclaims: int | None
    microseconds: int | None
    pages: int | None


@dataclass
class Evidence:
    """What the evidence observer left; None for a table that is not there."""

    tasks: list[Task] | None = None
    looks: list[Look] | None = None
    trace: Table | None = None
    problems: list[str] = field(default_factory=list)


def read_evidence(run: Path) -> Evidence | None:
    """The evidence in a run's folder; None if there is none."""
    problems: list[str] = []
    evidence = Evidence(read_tasks(run, problems), read_looks(run, problems), problems=problems)
    evidence.trace = read_trace(run, problems)
    if evidence.tasks is None and evidence.looks is None and evidence.trace is None:
        return None
    return evidence


def read_trace(run: Path, problems: list[str]) -> Table | None:
    """trace.tsv: sums that the kernel made of its own events."""
    raw = read_file(run / "trace.tsv", problems)
    if not raw:
        return None
    table = parse_table(raw)
    if table is None:
        problems.append("trace.tsv: has no header that can be read, left out")
        return None
    problems += [f"trace.tsv: {problem}" for problem in table.problems]
    return table if len(table.columns[STAMP]) else None


def read_tasks(run: Path, problems: list[str]) -> list[Task] | None:
    """tasks.tsv: each task's clocks, in the order in which they were first seen."""
    rows = _open(run / "tasks.tsv", (STAMP, "stream", "pid", "state"), problems)
    if rows is None:
        return None
    found: dict[tuple[str, int], list[_Life]] = {}
    clocks = [name for name in CLOCKS if name in rows.names]
    for row in rows:
        stamp, pid = _number(row[STAMP]), _whole(row["pid"])
        if stamp is None or pid is None:
            rows.unread += 1
            continue
        values = [_float(row[name]) for name in clocks]
        key = (_text(row["stream"]), pid)
        lives = found.setdefault(key, [])
        if not lives or lives[-1].is_over(stamp, values):
            lives.append(_Life())
        lives[-1].add(stamp, _text(row["state"])[:1] or "?", values)
        lives[-1].comm = _text(row.get("comm", b"")) or lives[-1].comm
    rows.report()
    return [
        Task(
            stream, pid, life.comm, np.array(life.stamps), "".join(life.states), life.table(clocks)
        )
        for (stream, pid), lives in found.items()
        for life in lives
    ]


def read_looks(run: Path, problems: list[str]) -> list[Look] | None:
    """blocked.tsv, in order of time."""
    rows = _open(run / "blocked.tsv", (STAMP, "stream", "pid", "state", "stack"), problems)
    if rows is None:
        return None
    looks = []
    for row in rows:
        stamp, pid = _number(row[STAMP]), _whole(row["pid"])
        if stamp is None or pid is None:
            rows.unread += 1
            continue
        comm, wchan = _text(row.get("comm", b"")), _text(row.get("wchan", b""))
        state = _text(row["state"])[:1] or "?"
        looks.append(
            Look(stamp, _text(row["stream"]), pid, comm, state, wchan, frames(row["stack"]))
        )
    rows.report()
    return sorted(looks, key=lambda look: look.at)


def read_failures(run: Path, problems: list[str]) -> list[Failure] | None:
    """allocfail.tsv: page allocations that failed, those included that the log does not show."""
    rows = _open(run / "allocfail.tsv", (STAMP, "count", "pid", "order", "gfp"), problems)
    if rows is None:
        return None
    found = []
    for row in rows:
        # Before the workload began it is below zero.
        stamp = float(row[STAMP]) if SIGNED.fullmatch(row[STAMP]) else None
        pid = _whole(row["pid"])
        number, order = _whole(row["count"]), _whole(row["order"])
        gfp = int(row["gfp"], 16) if HEX.fullmatch(row["gfp"]) else None
        if stamp is None or pid is None or number is None or order is None or gfp is None:
            rows.unread += 1
            continue
        stack = frames(row.get("stack", b""))
        found.append(Failure(stamp, number, pid, _text(row.get("comm", b"")), order, gfp, stack))
    rows.report()
    return found


def read_reclaimers(run: Path, problems: list[str]) -> list[Reclaimer] | None:
    """reclaim.tsv: who was in direct reclaim, the longest first."""
    rows = _open(run / "reclaim.tsv", ("pid",), problems)
    if rows is None:
        return None
    found = []
    for row in rows:
        pid = _whole(row["pid"])
        if pid is None:
            rows.unread += 1
            continue
        names = ("direct_reclaims", "direct_reclaim_us", "direct_reclaim_pages")
        values = [_number(row.get(name, b"")) for name in names]
        whole = [None if value is None else int(value) for value in values]
        found.append(Reclaimer(pid, _text(row.get("comm", b"")), *whole))
    rows.report()
    return sorted(found, key=lambda one: -(one.microseconds or 0))


@functools.lru_cache(10_000)  # a run has few different ones
def frames(stack: bytes | str) -> tuple[str, ...]:
    """The functions of a folded stack, without what a compiler adds to their names."""
    text = stack if isinstance(stack, str) else _text(stack)
    names = text.split(BETWEEN_FRAMES)[:MOST_FRAMES] if text.strip() else []
    return tuple(sys.intern(SUFFIX.sub("", name.strip())) for name in names if name.strip())


@dataclass
class _Life:
    """The rows of one task while they are read."""

    comm: str = ""
    stamps: list[float] = field(default_factory=list)
    states: list[str] = field(default_factory=list)
    values: list[list[float]] = field(default_factory=list)

    def add(self, stamp: float, state: str, values: list[float]) -> None:
        """One more row; of two with the same stamp, or a later one before it, the newer stands."""
        if self.stamps and stamp <= self.stamps[-1]:
            if not _went_back(values, self.values[-1]):
                self.states[-1], self.values[-1] = state, values
            return
        self.stamps.append(stamp)
        self.states.append(state)
        self.values.append(values)

    def is_over(self, stamp: float, values: list[float]) -> bool:
        """Whether this row is another task's: a clock or the time went back."""
        if stamp <= self.stamps[-1]:
            return stamp <= self.stamps[-1] - AT_ONCE_S
        return _went_back(values, self.values[-1])

    def table(self, clocks: list[str]) -> dict[str, Floats]:
        """Column name -> values, those left out of which no cell could be read."""
        columns = np.array(self.values, dtype=np.float64).reshape(len(self.stamps), len(clocks)).T
        named = zip(clocks, columns, strict=True)
        return {name: column for name, column in named if np.isfinite(column).any()}


def _went_back(values: list[float], before: list[float]) -> bool:
    return any(now < then for now, then in zip(values, before, strict=True))


class _Table:
    """The whole rows of a table, each as column -> cell; damage is counted."""

    def __init__(
        self, path: Path, needed: tuple[str, ...], raw: bytes, problems: list[str]
    ) -> None:
        found: list[str] = []
        header, _, self.body = whole_lines(raw, found).partition(b"\n")
        self.names = header.decode("ascii", "replace").split("\t")
        self.file, self.problems, self.unread = path.name, problems, 0
        problems += [f"{path.name}: {problem}" for problem in found]
        self.usable = set(needed) <= set(self.names) and len(set(self.names)) == len(self.names)
        if not self.usable:
            problems.append(f"{path.name}: has no header that can be read, left out")

    def __iter__(self) -> Iterator[dict[str, bytes]]:
        for line in self.body.split(b"\n")[:-1]:
            cells = line.split(b"\t")
            if len(cells) == len(self.names):
                yield dict(zip(self.names, cells, strict=True))
            else:
                self.unread += 1

    def report(self) -> None:
        """Name what was left out."""
        if self.unread:
            self.problems.append(
                f"{self.file}: {count(self.unread, 'row')} could not be read and left out"
            )


def _open(path: Path, needed: tuple[str, ...], problems: list[str]) -> _Table | None:
    """The table in this file; None, and why is in problems, if there is none in it."""
    raw = read_file(path, problems)
    if not raw:
        return None
    table = _Table(path, needed, raw, problems)
    return table if table.usable else None


def _number(cell: bytes) -> float | None:
    return float(cell) if NUMBER.fullmatch(cell) else None


def _float(cell: bytes) -> float:
    # Nearly all cells are digits, and asking for that is much cheaper than the expression.
    plain = len(cell) <= DIGITS and cell.isdigit()
    return float(cell) if plain or NUMBER.fullmatch(cell) else NAN


def _whole(cell: bytes) -> int | None:
    return int(cell) if WHOLE.fullmatch(cell) else None


def _text(cell: bytes) -> str:
    return cell.decode("utf-8", "replace")
