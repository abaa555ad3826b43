# SPDX-License-Identifier: GPL-2.0-or-later
"""Reads the evidence of a run: tasks.tsv, blocked.tsv, trace.tsv, allocfail.tsv, reclaim.tsv.

docs/reference/results-format.md describes every column. Damage never raises: it is reported in
`problems`, a line for each kind of damage. A cell that is empty or no number becomes NaN; a column
that is not there gives no clock.
"""

import functools
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import numpy as np

from analysis.reading.counter_tables import DIGITS, NUMBER, Table, load_table, names_of
from analysis.reading.files import LARGEST_EVIDENCE, read_file
from analysis.reading.latency_log import Floats, count, elapsed_time, whole_lines
from contract.run_files import ALLOCFAIL, BLOCKED, RECLAIM, STAMP, TASKS, TRACE

CLOCKS = (
    *("cpu_us", "rq_us", "blkio_us", "swapin_us", "freepages_us", "thrashing_us", "compact_us"),
    *("wpcopy_us", "irq_us", "majflt", "minflt"),
)
BETWEEN_FRAMES = " <- "
MOST_FRAMES = 64
MOST_TASKS = 2000  # of a run; a real run has two or three for each program
MOST_LOOKS = 200_000  # rows of blocked.tsv; half an hour of a laptop's stalls has 20,000
AT_ONCE_S = 0.25  # a stamp may go back by less than this: two writers may write at the same moment
SUFFIX = re.compile(r"(\.(isra|constprop|part|cold|llvm|lto_priv)(\.\d+)*)+$")
SIGNED = re.compile(rb"-?\d{1,9}(\.\d{1,9})?")
WHOLE = re.compile(rb"-?\d{1,9}")
NAN = float("nan")
T = TypeVar("T")
Row = dict[str, bytes]  # column -> cell
HEX = re.compile(rb"(0[xX])?[0-9a-fA-F]{1,16}")


@dataclass
class Task:
    """One task of a stream (`-`: no stream).

    `stamps`: elapsed seconds. `states` (one letter) and `clocks` (name -> cumulative µs, majflt and
    minflt: counts) have a value for each stamp.
    """

    stream: str
    pid: int
    comm: str
    stamps: Floats
    states: str
    clocks: dict[str, Floats]


@dataclass(frozen=True)
class Look:
    """One sample of what a task was doing; `at`: elapsed seconds.

    `stack`: functions, innermost first; empty if the task was in user space.
    """

    at: float
    stream: str
    pid: int
    comm: str
    state: str
    wchan: str
    stack: tuple[str, ...]


@dataclass(frozen=True)
class Failure:
    """Equal page allocations that failed within a second.

    `at`: elapsed seconds, negative before the workload began; `order`: 2**order pages; `gfp`: the
    kernel's bit mask.
    """

    at: float
    count: int
    pid: int
    comm: str
    order: int
    gfp: int
    stack: tuple[str, ...]


@dataclass(frozen=True)
class Reclaimer:
    """Direct reclaim of one task in the whole run: count, µs, pages; None: not available."""

    pid: int
    comm: str
    reclaims: int | None
    microseconds: int | None
    pages: int | None


def read_trace(run: Path, problems: list[str]) -> Table | None:
    """Read trace.tsv: cumulative counts and times (µs) of the kernel's trace events."""
    return load_table(run / TRACE, problems, None, LARGEST_EVIDENCE)


def read_tasks(run: Path, problems: list[str]) -> list[Task] | None:
    """Read tasks.tsv: the tasks in the order in which they were first seen."""
    lives: dict[tuple[str, int], list[_Life]] = {}
    every: list[_Life] = []
    left_out: set[tuple[str, int]] = set()
    clocks: list[str] = []

    def parse(row: Row) -> bool:
        stamp, pid = elapsed_time(_number(row[STAMP])), _whole(row["pid"])
        if stamp is None or pid is None:
            return False
        if not clocks:
            clocks.extend(name for name in CLOCKS if name in row)
        values = [_float(row[name]) for name in clocks]
        key = (_text(row["stream"]), pid)
        lived = lives.get(key, [])
        if not lived or lived[-1].is_over(stamp, values):
            if len(every) >= MOST_TASKS:
                left_out.add(key)
                return True
            every.append(_Life())
            lived = lives.setdefault(key, [])
            lived.append(every[-1])
        lived[-1].add(stamp, _text(row["state"])[:1] or "?", values)
        lived[-1].comm = _text(row.get("comm", b"")) or lived[-1].comm
        return True

    if _read(run / TASKS, (STAMP, "stream", "pid", "state"), parse, problems) is None:
        return None
    if left_out:
        problems.append(f"{TASKS}: only its first {MOST_TASKS:,} tasks are read")
    return [
        Task(
            stream, pid, life.comm, np.array(life.stamps), "".join(life.states), life.table(clocks)
        )
        for (stream, pid), lived in lives.items()
        for life in lived
    ]


def read_looks(run: Path, problems: list[str]) -> list[Look] | None:
    """Read blocked.tsv: samples in order of time."""

    def parse(row: Row) -> Look | None:
        stamp, pid = elapsed_time(_number(row[STAMP])), _whole(row["pid"])
        if stamp is None or pid is None:
            return None
        comm, wchan = _text(row.get("comm", b"")), _text(row.get("wchan", b""))
        state = _text(row["state"])[:1] or "?"
        return Look(stamp, _text(row["stream"]), pid, comm, state, wchan, frames(row["stack"]))

    needed = (STAMP, "stream", "pid", "state", "stack")
    looks = _read(run / BLOCKED, needed, parse, problems)
    if looks is not None and len(looks) > MOST_LOOKS:
        problems.append(f"{BLOCKED}: only its first {MOST_LOOKS:,} rows are read")
        del looks[MOST_LOOKS:]
    return None if looks is None else sorted(looks, key=lambda look: look.at)


def read_failures(run: Path, problems: list[str]) -> list[Failure] | None:
    """Read allocfail.tsv: page allocations that failed, whether the kernel logged them or not."""

    def parse(row: Row) -> Failure | None:
        # The stamp is negative before the workload began.
        stamp = float(row[STAMP]) if SIGNED.fullmatch(row[STAMP]) else None
        pid = _whole(row["pid"])
        number, order = _whole(row["count"]), _whole(row["order"])
        gfp = int(row["gfp"], 16) if HEX.fullmatch(row["gfp"]) else None
        if stamp is None or pid is None or number is None or order is None or gfp is None:
            return None
        stack = frames(row.get("stack", b""))
        return Failure(stamp, number, pid, _text(row.get("comm", b"")), order, gfp, stack)

    return _read(run / ALLOCFAIL, (STAMP, "count", "pid", "order", "gfp"), parse, problems)


def read_reclaimers(run: Path, problems: list[str]) -> list[Reclaimer] | None:
    """Read reclaim.tsv: the tasks that were in direct reclaim, the longest time first."""

    def parse(row: Row) -> Reclaimer | None:
        pid = _whole(row["pid"])
        if pid is None:
            return None
        names = ("direct_reclaims", "direct_reclaim_us", "direct_reclaim_pages")
        values = [_number(row.get(name, b"")) for name in names]
        whole = [None if value is None else int(value) for value in values]
        return Reclaimer(pid, _text(row.get("comm", b"")), *whole)

    tasks = _read(run / RECLAIM, ("pid",), parse, problems)
    return None if tasks is None else sorted(tasks, key=lambda task: -(task.microseconds or 0))


@functools.lru_cache(10_000)  # a run has few different stacks
def frames(stack: bytes | str) -> tuple[str, ...]:
    """The functions of a folded stack, without the suffixes that a compiler adds (.isra.0)."""
    text = stack if isinstance(stack, str) else _text(stack)
    names = text.split(BETWEEN_FRAMES)[:MOST_FRAMES] if text.strip() else []
    return tuple(sys.intern(SUFFIX.sub("", name.strip())) for name in names if name.strip())


@dataclass
class _Life:
    """The rows of one task, collected while the table is read."""

    comm: str = ""
    stamps: list[float] = field(default_factory=list)
    states: list[str] = field(default_factory=list)
    values: list[list[float]] = field(default_factory=list)

    def add(self, stamp: float, state: str, values: list[float]) -> None:
        """Add a row; if its stamp is not later than the last, the larger clocks are kept."""
        if self.stamps and stamp <= self.stamps[-1]:
            if not _went_back(values, self.values[-1]):
                self.states[-1], self.values[-1] = state, values
            return
        self.stamps.append(stamp)
        self.states.append(state)
        self.values.append(values)

    def is_over(self, stamp: float, values: list[float]) -> bool:
        """Whether this row (stamp in s) is of another task: a clock or the time went back."""
        if stamp <= self.stamps[-1]:
            return stamp <= self.stamps[-1] - AT_ONCE_S
        return _went_back(values, self.values[-1])

    def table(self, clocks: list[str]) -> dict[str, Floats]:
        """Column name -> values (µs); columns without any readable cell are left out."""
        columns = np.array(self.values, dtype=np.float64).reshape(len(self.stamps), len(clocks)).T
        named = zip(clocks, columns, strict=True)
        return {name: column for name, column in named if np.isfinite(column).any()}


def _went_back(values: list[float], before: list[float]) -> bool:
    return any(now < then for now, then in zip(values, before, strict=True))


def _read(
    path: Path, needed: tuple[str, ...], parse: Callable[[Row], T | None], problems: list[str]
) -> list[T] | None:
    """The result of parse for each whole row; None if there is no table in this file.

    If parse returns None or False, the row could not be read. Damage is reported in problems.
    """
    raw = read_file(path, problems, LARGEST_EVIDENCE)
    if not raw:
        return None
    cut: list[str] = []
    header, _, body = whole_lines(raw, cut).partition(b"\n")
    problems += [f"{path.name}: {problem}" for problem in cut]
    names = names_of(header)
    if not set(needed) <= set(names) or len(set(names)) < len(names):
        problems.append(f"{path.name}: has no header that can be read, left out")
        return None
    records, unread = [], 0
    for line in body.split(b"\n")[:-1]:
        cells = line.split(b"\t")
        record = parse(dict(zip(names, cells, strict=True))) if len(cells) == len(names) else None
        if record:
            records.append(record)
        else:
            unread += 1
    if unread:
        problems.append(f"{path.name}: {count(unread, 'row')} could not be read and left out")
    return records


def _number(cell: bytes) -> float | None:
    return float(cell) if NUMBER.fullmatch(cell) else None


def _float(cell: bytes) -> float:
    # Nearly all cells are digits, and isdigit() is much faster than the regular expression.
    plain = len(cell) <= DIGITS and cell.isdigit()
    return float(cell) if plain or NUMBER.fullmatch(cell) else NAN


def _whole(cell: bytes) -> int | None:
    return int(cell) if WHOLE.fullmatch(cell) else None


def _text(cell: bytes) -> str:
    return cell.decode("utf-8", "replace")
