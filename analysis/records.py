# SPDX-License-Identifier: GPL-2.0-or-later
"""From the bytes of one result file to arrays (docs/FORMAT.md), and what had to be left out.

A dying machine cuts files anywhere. What cannot be believed is left out and said in `problems`, one
line for each kind of damage: a figure is right, or it is said that it may not be.
"""

import json
import re
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

END = "[end]"
LONGEST_TEXT = 4 * 4096 + 64  # the recorder cuts at 4,096 bytes, each at most four characters here
ROUNDING = 0.0015  # a gap may differ by 0.001 s from the difference of its stamps
STAMPED = re.compile(rb"^(\d{1,8}\.\d{3}) (\d{1,8}\.\d{3})(?: (.*))?$", re.MULTILINE)
NUMBER = re.compile(rb"\d{1,20}(\.\d{1,9})?")


@dataclass
class Lines:
    """The lines of one latency log in order of time; the `[end]` line is held apart."""

    elapsed: Floats
    gap: Floats
    text: list[str]
    end: tuple[float, float] | None = None  # elapsed and gap of the `[end]` line, seconds
    unaccounted: float = 0.0  # seconds between lines that no gap covers
    problems: list[str] = field(default_factory=list)


@dataclass
class Table:
    """One *.tsv: column name -> values, NaN where a cell was empty; rows in order of time."""

    columns: dict[str, Floats]
    problems: list[str] = field(default_factory=list)

    def get(self, name: str) -> Floats | None:
        """The column, or None if this kernel does not have it or no cell of it could be read."""
        values = self.columns.get(name)
        return None if values is None or not np.isfinite(values).any() else values


def whole_lines(raw: bytes, problems: list[str]) -> bytes:
    """raw up to its last newline; what follows was cut short, and that is said."""
    cut = raw.rfind(b"\n") + 1
    if cut < len(raw):
        problems.append("its last line was cut short and is left out")
    return raw[:cut]


def count(number: int, noun: str) -> str:
    """'1 line', '2 lines'."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def parse_lines(raw: bytes) -> Lines:
    """The lines of a latency-STREAM.log; elapsed and gap in seconds."""
    problems: list[str] = []
    body = whole_lines(raw, problems)
    found = STAMPED.findall(body)
    if damaged := body.count(b"\n") - len(found):
        problems.append(f"{count(damaged, 'line')} could not be read and left out")
    elapsed = np.array([float(one[0]) for one in found], dtype=np.float64)
    gap = np.array([float(one[1]) for one in found], dtype=np.float64)
    if huge := sum(len(one[2]) > LONGEST_TEXT for one in found):
        problems.append(f"the text of {count(huge, 'huge line')} was cut")
    text = [one[2][:LONGEST_TEXT].decode("ascii", "replace") for one in found]
    step = np.diff(elapsed)
    # A gap within one millisecond is as impossible as a step back.
    backwards = int(np.count_nonzero((step < 0) | ((step == 0) & (gap[1:] > 0))))
    if backwards:
        problems.append(f"{count(backwards, 'line')} out of order, sorted by time")
        # Of two lines in one millisecond the first one has the gap; `[end]` comes last.
        last = np.array([one == END for one in text])
        order = np.lexsort((-gap, last, elapsed))
        elapsed, gap, text = elapsed[order], gap[order], [text[i] for i in order]
    keep = _believable(elapsed, gap)
    if impossible := len(text) - len(keep):
        elapsed, gap, text = elapsed[keep], gap[keep], [text[i] for i in keep]
        problems.append(f"{count(impossible, 'line')} overlap the line before and are left out")
    lines = Lines(elapsed, gap, text, problems=problems)
    between = elapsed[1:] - elapsed[:-1] - gap[1:]
    lines.unaccounted = float(between[between > ROUNDING].sum())
    if text and text[-1] == END:
        lines.end = (float(elapsed[-1]), float(gap[-1]))
        lines.elapsed, lines.gap, lines.text = elapsed[:-1], gap[:-1], text[:-1]
    if END in lines.text:
        problems.append("goes on after its [end] line")
    return lines


def _believable(elapsed: Floats, gap: Floats) -> list[int]:
    """Indices of the lines whose gap does not reach back beyond the line before them."""
    if not np.any(elapsed[1:] - gap[1:] < elapsed[:-1] - ROUNDING):
        return list(range(len(elapsed)))
    keep: list[int] = []
    previous = -np.inf
    for index, (now, length) in enumerate(zip(elapsed, gap, strict=True)):
        if now - length >= previous - ROUNDING:
            keep.append(index)
            previous = now
    return keep


def parse_table(raw: bytes) -> Table | None:
    """A *.tsv; None if it does not even have a whole header with `elapsed_s`."""
    problems: list[str] = []
    body = whole_lines(raw, problems)
    header, _, rest = body.partition(b"\n")
    names = [name.decode("ascii", "replace") for name in header.split(b"\t")]
    if "elapsed_s" not in names:
        return None
    stamp = names.index("elapsed_s")
    values: list[float] = []
    unread = dropped = 0
    for row in rest.split(b"\n")[:-1]:
        cells = row.split(b"\t")
        if len(cells) != len(names) or not NUMBER.fullmatch(cells[stamp]):
            dropped += 1
            continue
        for cell in cells:
            if NUMBER.fullmatch(cell):
                values.append(float(cell))
            else:
                values.append(np.nan)
                unread += bool(cell)
    if dropped:
        problems.append(f"{count(dropped, 'row')} could not be read and left out")
    if unread:
        problems.append(f"{count(unread, 'cell')} not a number and left out")
    grid = np.array(values, dtype=np.float64).reshape(-1, len(names))
    steps = np.diff(grid[:, stamp])
    if np.any(steps < 0):
        problems.append(f"{count(int(np.sum(steps < 0)), 'row')} out of order, sorted by time")
        grid = grid[np.argsort(grid[:, stamp], kind="stable")]
    columns: dict[str, Floats] = {}
    for index, name in enumerate(names):
        if name in columns:
            problems.append("a column is there twice: the first one is taken")
        else:
            columns[name] = grid[:, index]
    _check_steps(columns, problems)
    return Table(columns, list(dict.fromkeys(problems)))


def _check_steps(columns: dict[str, Floats], problems: list[str]) -> None:
    """Say when samples are missing: a long step that its sample's own lateness does not explain."""
    stamps, late = columns["elapsed_s"], columns.get("late_s")
    if late is None or len(stamps) < 3:
        return
    steps = np.diff(stamps)
    unexplained = steps - np.nan_to_num(late[1:]) > 10 * np.median(steps) + 1
    if unexplained.any():
        problems.append(f"samples are missing at {count(int(unexplained.sum()), 'place')}")


def parse_object(raw: bytes) -> dict[str, Any] | None:
    """One JSON object; None if it is none. NaN and Infinity become null."""
    try:
        value = json.loads(raw, parse_constant=lambda _: None)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def parse_events(raw: bytes) -> tuple[list[dict[str, Any]], list[str]]:
    """The events of an events.jsonl, and what was left out of them."""
    problems: list[str] = []
    events: list[dict[str, Any]] = []
    damaged = 0
    for line in whole_lines(raw, problems).split(b"\n")[:-1]:
        event = parse_object(line)
        if event is not None and isinstance(event.get("event"), str):
            events.append(event)
        else:
            damaged += 1
    if damaged:
        problems.append(f"{count(damaged, 'event')} could not be read and left out")
    return events, problems


def number(value: object) -> float | None:
    """A finite number of a JSON file, or None: a bool, a text or a number beyond bounds is none."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if -1e18 < value < 1e18 else None
