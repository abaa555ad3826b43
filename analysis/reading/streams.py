# SPDX-License-Identifier: GPL-2.0-or-later
"""One program's lines as a run has them: when it began, its gaps, and how its silence ended."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from analysis.reading.files import LARGEST_LOG, read_file
from analysis.reading.latency_log import ROUNDING, Floats, Lines, elapsed_time, parse_lines
from errors import UserError

STALL = 1.0  # a gap of this length is a stall, unless said otherwise


@dataclass(frozen=True)
class Stream:
    """The lines of one program; `elapsed` and `gap` in seconds, one value a line."""

    name: str
    begin: float  # elapsed at which it started
    elapsed: Floats
    gap: Floats
    open_gap: float  # the silence after the last line, seconds: a stall that may not have ended
    ended: bool  # its end was recorded; else open_gap reaches to the last thing the machine sent
    late: Floats | None = None  # seconds of each `late S` line, NaN for others; None: no such line
    log: Path | None = None
    unaccounted: float = 0.0  # seconds that the gap of no line covers: what was said then is lost

    @property
    def lines(self) -> Sequence[str]:
        """What each line said: read from its log again each time, made into words if looked at."""
        raw = read_file(self.log, [], LARGEST_LOG) if self.log else None
        texts: Sequence[str] = () if raw is None else parse_lines(raw).text
        if len(texts) != len(self.elapsed):
            raise UserError(f"{self.log}: was changed while it was read")
        return texts

    @property
    def last(self) -> float:
        """Elapsed of the last line (of the start if there is none)."""
        return float(self.elapsed[-1]) if len(self.elapsed) else self.begin

    @property
    def until(self) -> float:
        """Elapsed up to which the stream is known: its end, or the last thing the machine sent."""
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
    """The stream with its start and its open gap; None if it never started."""
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
    # Without an [end] line: was it silent in the end, or are its last lines lost?
    unaccounted += 0.0 if lines.end else open_gap
    return Stream(name, begin, lines.elapsed, lines.gap, open_gap, ended, late, log, unaccounted)


def _end(events: list[dict[str, Any]], name: str) -> float | None:
    """Elapsed at which the stream's end was recorded, if it was."""
    for event in events:
        if event["event"] == "stream-end" and event.get("stream") == name:
            return elapsed_time(event.get("elapsed"))
    return None
