# SPDX-License-Identifier: GPL-2.0-or-later
"""The lines of one program in a run: when it began, its gaps, and the gap at its end."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from analysis.reading.files import LARGEST_LOG, read_file
from analysis.reading.latency_log import ROUNDING, Floats, Lines, elapsed_time, parse_lines
from errors import UserError

STALL = 1.0  # s; a gap of at least this length is a stall, unless another threshold is given


@dataclass(frozen=True)
class Stream:
    """The lines of one program; `elapsed` and `gap` in seconds, a value for each line."""

    name: str
    begin: float  # elapsed s at which it started
    elapsed: Floats
    gap: Floats
    open_gap: float  # seconds after the last line: a gap that may not have ended
    ended: bool  # its end was recorded; if not, open_gap lasts until the machine's last data
    late: Floats | None = None  # seconds of each `late S` line, NaN for others; None: no such line
    log: Path | None = None
    unaccounted: float = 0.0  # seconds that no line's gap covers: lines of that time are lost

    @property
    def lines(self) -> Sequence[str]:
        """The text of each line; reads the log again at each call, decodes a text when indexed."""
        raw = read_file(self.log, [], LARGEST_LOG) if self.log else None
        texts: Sequence[str] = () if raw is None else parse_lines(raw).text
        if len(texts) != len(self.elapsed):
            raise UserError(f"{self.log}: was changed while it was read")
        return texts

    @property
    def last(self) -> float:
        """Elapsed s of the last line; of the start if there is no line."""
        return float(self.elapsed[-1]) if len(self.elapsed) else self.begin

    @property
    def until(self) -> float:
        """Elapsed s up to which the stream is known: its end, or the machine's last data."""
        return self.last + self.open_gap


def make_stream(
    log: Path,
    name: str,
    lines: Lines,
    events: list[dict[str, Any]],
    began: bool,
    last_sent: float,
    warnings: list[str],
) -> Stream | None:
    """The stream with its start and its open gap; None if it never started.

    last_sent: elapsed s of the last line, sample or event that the machine sent.
    """
    spoke = len(lines.elapsed) > 0 or lines.end is not None
    if not spoke and not began:
        warnings.append(f"{log.name}: empty, and the workload never began")
        return None
    begin = 0.0
    if len(lines.elapsed):
        begin = float(lines.elapsed[0] - lines.gap[0])
    elif lines.end:
        begin = lines.end[0] - lines.end[1]
    unaccounted = lines.unaccounted + max(0.0, begin)
    if unaccounted > ROUNDING:
        warnings.append(f"{log.name}: lines are missing, {unaccounted:.1f} s uncounted")
    if begin < -ROUNDING:
        warnings.append(f"{log.name}: its first gap reaches back before the start")
    last = float(lines.elapsed[-1]) if len(lines.elapsed) else begin
    over = _end(events, name)
    if lines.end:
        open_gap, ended = lines.end[1], True
    elif over is not None and over >= last:
        open_gap, ended = over - last, True
    else:
        open_gap, ended = max(0.0, last_sent - last), False
    late = lines.text.lateness()
    # Without an [end] line nobody knows whether the program stalled or its last lines are lost.
    unaccounted += 0.0 if lines.end else open_gap
    return Stream(name, begin, lines.elapsed, lines.gap, open_gap, ended, late, log, unaccounted)


def _end(events: list[dict[str, Any]], name: str) -> float | None:
    """Elapsed s at which the stream's end was recorded; None if it was not."""
    for event in events:
        if event["event"] == "stream-end" and event.get("stream") == name:
            return elapsed_time(event.get("elapsed"))
    return None
