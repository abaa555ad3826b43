# SPDX-License-Identifier: GPL-2.0-or-later
"""Parses the bytes of one result file to arrays, and reports what it left out.

docs/reference/results-format.md describes the files.

A dying machine cuts files anywhere. What cannot be true is left out and reported in `problems`, a
line for each kind of damage: a figure is right, or a line warns that it may not be.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import repeat
from typing import Any

import numpy as np
from numpy.typing import NDArray

from contract.untrusted import json_object

Floats = NDArray[np.float64]

Bools = NDArray[np.bool_]
Places = NDArray[np.intp]
Chars = NDArray[np.uint8]

END = b"[end]"
NEWLINE, BLANK, POINT, ZERO = b"\n .0"
PIECE = 1 << 18  # bytes of lines that are parsed together
LONGEST_TEXT = 4 * 4096 + 64  # the recorder cuts at 4,096 bytes, each at most four characters
MOST_SECONDS = 1e8  # three years: the longest stamp that a log can hold
MOST_EVENTS = 10_000  # of a run; a real run has a few dozen
ROUNDING = 0.0015  # s; a gap may differ by 0.001 s from the difference of its stamps
STAMPED = re.compile(rb"^(\d{1,8}\.\d{3}) (\d{1,8}\.\d{3})(?: (.*))?$", re.MULTILINE)
LATE = re.compile(rb"(?:chunk|beat) \d+ late (\d{1,8}\.\d+)")
LATE_LINE = re.compile(rb"^[\d.]+ [\d.]+ " + LATE.pattern + rb"$", re.MULTILINE)


class Texts(Sequence[str]):
    """The texts of a log's lines: keeps the log's bytes, and decodes a text when it is indexed."""

    def __init__(self, body: bytes, begins: Places, ends: Places) -> None:
        self.body, self.begins, self.ends = body, begins, ends

    def __len__(self) -> int:
        return len(self.begins)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return Texts(self.body, self.begins[index], self.ends[index])
        end = min(self.ends[index], self.begins[index] + LONGEST_TEXT)
        return self.body[self.begins[index] : end].decode("ascii", "replace")

    def pick(self, order: NDArray[Any]) -> "Texts":
        """The texts at these indices (or True in a mask), in this order."""
        return Texts(self.body, self.begins[order], self.ends[order])

    def which(self, text: bytes) -> Bools:
        """A mask of the lines whose text is `text`."""
        matches: Bools = self.ends - self.begins == len(text)
        for index in np.flatnonzero(matches):
            matches[index] = self.body[self.begins[index] : self.ends[index]] == text
        return matches

    def lateness(self) -> Floats | None:
        """S (seconds) of each `late S` text, NaN for other texts; None if there is no such text."""
        if b" late " not in self.body or not len(self):
            return None
        # Usually every line of the log is such a line, and none was left out or moved.
        lines = self.body[: self.ends[-1] + 1]
        late_texts = LATE_LINE.findall(lines)
        if len(late_texts) == len(self) == lines.count(b"\n") and np.all(np.diff(self.begins) > 0):
            return np.array([float(seconds) for seconds in late_texts])
        ends = np.minimum(self.ends, self.begins + LONGEST_TEXT).tolist()
        matches = map(LATE.fullmatch, repeat(self.body), self.begins.tolist(), ends)
        late = np.array([float(match[1]) if match else np.nan for match in matches])
        return None if np.isnan(late).all() else late


@dataclass
class Lines:
    """The lines of one latency log in order of time, without its `[end]` line; seconds."""

    elapsed: Floats
    gap: Floats
    text: Texts
    end: tuple[float, float] | None = None  # elapsed and gap of the `[end]` line
    unaccounted: float = 0.0  # seconds between lines that no gap covers
    problems: list[str] = field(default_factory=list)


def whole_lines(raw: bytes, problems: list[str]) -> bytes:
    """raw up to its last newline; if more follows, it was cut short and a problem reports it."""
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
    elapsed, gap, text = _read(body, problems)
    if huge := int(np.count_nonzero(text.ends - text.begins > LONGEST_TEXT)):
        problems.append(f"the text of {count(huge, 'huge line')} was cut")
    step = np.diff(elapsed)
    # A gap within one millisecond is as impossible as a step back.
    backwards = int(np.count_nonzero((step < 0) | ((step == 0) & (gap[1:] > 0))))
    if backwards:
        problems.append(f"{count(backwards, 'line')} out of order, sorted by time")
        # Of two lines in the same millisecond the first has the gap; `[end]` comes last.
        order = np.lexsort((-gap, text.which(END), elapsed))
        elapsed, gap, text = elapsed[order], gap[order], text.pick(order)
    keep = _believable(elapsed, gap)
    if impossible := int(np.count_nonzero(~keep)):
        elapsed, gap, text = elapsed[keep], gap[keep], text.pick(keep)
        problems.append(f"{count(impossible, 'line')} overlap the line before and are left out")
    lines = Lines(elapsed, gap, text, problems=problems)
    between = elapsed[1:] - elapsed[:-1] - gap[1:]
    lines.unaccounted = float(between[between > ROUNDING].sum())
    ends = text.which(END)
    if len(ends) and ends[-1]:
        lines.end = (float(elapsed[-1]), float(gap[-1]))
        lines.elapsed, lines.gap, lines.text = elapsed[:-1], gap[:-1], text[:-1]
        ends = ends[:-1]
    if ends.any():
        problems.append("goes on after its [end] line")
    return lines


def pieces(body: bytes) -> Iterator[tuple[int, bytes]]:
    """The lines of body in pieces, and where each piece begins: numpy takes 100 bytes a line."""
    begin = 0
    while begin < len(body):
        end = body.rfind(b"\n", begin, begin + PIECE) + 1 or body.find(b"\n", begin) + 1
        yield begin, body[begin:end]
        begin = end


def _read(body: bytes, problems: list[str]) -> tuple[Floats, Floats, Texts]:
    """Elapsed and gap (s) and text of all readable lines; problems has the number of others."""
    damaged = 0
    parts = [(np.zeros(0), np.zeros(0), np.zeros(0, np.intp), np.zeros(0, np.intp))]
    for begin, piece in pieces(body):
        at_once = undamaged(piece) if len(piece) <= PIECE else None
        elapsed, gap, text = at_once or line_by_line(piece)
        damaged += piece.count(b"\n") - len(elapsed)
        parts.append((elapsed, gap, text.begins + begin, text.ends + begin))
    if damaged:
        problems.append(f"{count(damaged, 'line')} could not be read and left out")
    elapsed, gap, begins, ends = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    return elapsed, gap, Texts(body, begins, ends)


def undamaged(body: bytes) -> tuple[Floats, Floats, Texts] | None:
    """Elapsed and gap (s) and text of all lines, at once; None if any line is damaged."""
    chars = np.frombuffer(body, dtype=np.uint8)
    ends = np.flatnonzero(chars == NEWLINE)
    begins = np.concatenate(([0], ends[:-1] + 1))[: len(ends)]
    # Two blanks are added: the last line may have no second blank, or none at all.
    blanks = np.concatenate((np.flatnonzero(chars == BLANK), [len(body), len(body)]))
    first = np.searchsorted(blanks, begins)
    middle, tail = blanks[first], np.minimum(blanks[first + 1], ends)
    elapsed, gap = milliseconds(chars, begins, middle), milliseconds(chars, middle + 1, tail)
    if elapsed is None or gap is None:
        return None
    return elapsed / 1000, gap / 1000, Texts(body, np.minimum(tail + 1, ends), ends)


def milliseconds(chars: Chars, begins: Places, ends: Places) -> Floats | None:
    """The numbers at these places times 1000; None unless all are like 12345678.123."""
    width = ends - begins
    if np.any((width < 5) | (width > 12)) or np.any(chars[ends - 4] != POINT):
        return None
    return _sums(chars, begins, ends, [*range(int(width.max(initial=0)), 4, -1), 3, 2, 1])


def digits(chars: Chars, begins: Places, ends: Places) -> Floats | None:
    """The integers at these places (0 if empty); None if one is no integer or is too long."""
    longest = int((ends - begins).max(initial=0))
    return _sums(chars, begins, ends, list(range(longest, 0, -1))) if longest <= 15 else None


def _sums(chars: Chars, begins: Places, ends: Places, places: list[int]) -> Floats | None:
    """The numbers formed by the digits at these distances before `ends`; None if one is no digit.

    A digit before `begins` counts as 0. Sums of up to 15 digits are exact in any order; divided by
    a power of ten they round as float() does.
    """
    if not len(chars):
        return np.zeros(len(begins))
    at = ends - np.array(places, dtype=np.intp)[:, np.newaxis]  # a row for each distance: faster
    digit = chars.take(at, mode="clip") - ZERO
    digit *= at >= begins
    if digit.max(initial=0) > 9:
        return None
    return np.asarray(10.0 ** np.arange(len(places) - 1, -1, -1) @ digit)


def line_by_line(body: bytes) -> tuple[Floats, Floats, Texts]:
    """Elapsed and gap (s) and text of all readable lines, by a regular expression."""
    matches = list(STAMPED.finditer(body))
    elapsed = np.array([float(match[1]) for match in matches], dtype=np.float64)
    gap = np.array([float(match[2]) for match in matches], dtype=np.float64)
    spans = [
        match.span(3) if match[3] is not None else (match.end(), match.end()) for match in matches
    ]
    begins, ends = np.array(spans, dtype=np.intp).reshape(-1, 2).T
    return elapsed, gap, Texts(body, begins, ends)


def _believable(elapsed: Floats, gap: Floats) -> Bools:
    """A mask of the lines whose gap does not reach back beyond the previous line."""
    keep = np.ones(len(elapsed), dtype=np.bool_)
    if not np.any(elapsed[1:] - gap[1:] < elapsed[:-1] - ROUNDING):
        return keep
    previous = -np.inf
    for index, (now, length) in enumerate(zip(elapsed, gap, strict=True)):
        keep[index] = now - length >= previous - ROUNDING
        if keep[index]:
            previous = now
    return keep


def parse_events(raw: bytes) -> tuple[list[dict[str, Any]], list[str]]:
    """The events of an events.jsonl, and the problems: what was left out."""
    problems: list[str] = []
    events: list[dict[str, Any]] = []
    damaged = 0
    lines = whole_lines(raw, problems).split(b"\n")[:-1]
    if len(lines) > MOST_EVENTS:
        problems.append(f"only its first {MOST_EVENTS:,} events are read")
    for line in lines[:MOST_EVENTS]:
        event = json_object(line)
        if event is not None and isinstance(event.get("event"), str):
            events.append(event)
        else:
            damaged += 1
    if damaged:
        problems.append(f"{count(damaged, 'event')} could not be read and left out")
    return events, problems


def number(value: object) -> float | None:
    """The value of a JSON file as a float; None for a bool, a text or a number beyond ±1e18."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if -1e18 < value < 1e18 else None


def elapsed_time(value: object) -> float | None:
    """An elapsed time of a JSON file, seconds; None if it is no number or longer than any run."""
    seconds = number(value)
    return seconds if seconds is not None and 0 <= seconds < MOST_SECONDS else None
