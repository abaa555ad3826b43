# SPDX-License-Identifier: GPL-2.0-or-later
"""One run as the page needs it: its streams, its counters, its stalls, as whole numbers.

Times are in ms, each as the difference to the one before it; a curve's values are multiples of its
`scale`. Of a stream that prints on a clock there are its gaps of KEPT_PACED or more and the longest
of each second. A page of hundreds of runs has less of each (`whole` is False), but every gap of
another subject of KEPT or more, and every stall.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analysis.figures import counters
from analysis.figures.stalls import (
    BEAT_TOLERANCE,
    PACE,
    PACED,
    SKIP_TOLERANCE,
    freezes,
    kind,
    stalls,
)
from analysis.reading.latency_log import Floats, number
from analysis.reading.load import Run
from analysis.reading.streams import STALL, Stream
from analysis.reading.words import plain
from analysis.stall_causes.causes import RunCauses
from analysis.text import causes as causes_text
from contract.run_files import HEARTBEAT, PLAYER
from graphs.pictures.panels import Panel, panels_of

KEPT = 0.1  # s: a gap of this length is never thinned out
KEPT_PACED = 1.5 * PACE  # of a stream that prints on a clock
TOLD = 10  # longest stalls (of subjects, of others) with their causes, if the page is thinned
SAMPLES = 180  # of a curve, if the page is thinned
SCALES = {"pages": 1.0, "MiB/s": 0.01, "%": 0.1, "MiB": 0.1}
OTHER_SCALE = 0.1
MOVED = (counters.SWAP_IN, counters.SWAP_OUT, counters.PAGE_IN, counters.PAGE_OUT)
PRESSURES = ("memory_some_us", "memory_full_us")
US_PER_PERCENT = 10_000.0  # of a second
Bools = NDArray[np.bool_]


def run_block(run: Run, whole: bool, why: RunCauses | None = None) -> dict[str, Any]:
    """Everything that the page shows of one run only when it is chosen; why: its causes."""
    streams = list(run.streams.values())
    subjects = {stream.name for stream in run.subjects}
    times: list[list[int]] = []  # most curves have the same
    return {
        "streams": [_stream(one, whole) | {"subject": one.name in subjects} for one in streams],
        "panels": [_panel(panel, run, whole, times) for panel in panels_of(run)],
        "times": times,
        "stalls": _columns(_stalls(run, streams, whole, why)),
        "averages": _averages(run),
        "freezes": [[_ms(begin), _ms(end)] for begin, end in freezes(run.subjects)],
        "until": _ms(max([run.last_sent, *(stream.until for stream in streams)])),
        "bootClock": number(run.meta.get("t0")),
    }


def threshold(stream: Stream) -> float:
    """The gap from which a silence of this stream is a stall, seconds."""
    if kind(stream.name) == HEARTBEAT:
        return PACE + BEAT_TOLERANCE
    return PACE + SKIP_TOLERANCE if kind(stream.name) == PLAYER else STALL


def _ms(seconds: float) -> int:
    return round(1000 * seconds)


def _whole(values: Floats) -> list[int]:
    found: list[int] = np.rint(values).astype(np.int64).tolist()
    return found


def _deltas(stamps: Floats) -> list[int]:
    """Seconds as ms, each (the first too) as the difference to the one before it."""
    return np.diff(np.rint(1000 * stamps).astype(np.int64), prepend=0).tolist()  # type: ignore[no-any-return]


def _stream(stream: Stream, whole: bool) -> dict[str, Any]:
    keep = _kept(stream, whole)
    found: dict[str, Any] = {
        "name": plain(stream.name, 40),
        "begin": _ms(stream.begin),
        "paced": kind(stream.name) in PACED,
        "t": _deltas(stream.elapsed[keep]),
        "lines": len(stream.elapsed),
        "open": _ms(stream.open_gap),
        "last": _ms(stream.last),
        "ended": stream.ended,
        "worst": _ms(max(float(stream.gap.max(initial=0)), stream.open_gap)),
    }
    gaps = _whole(1000 * stream.gap[keep])
    # Without a line missing a gap is the step since the line before.
    found["gaps"] = None if gaps == [*_first_step(found), *found["t"][1:]] else gaps
    return found


def _first_step(found: dict[str, Any]) -> list[int]:
    return [found["t"][0] - found["begin"]] if found["t"] else []


def _kept(stream: Stream, whole: bool) -> Bools:
    """Which lines the page has: all, or those after a long gap and the longest of each second.

    All only of a stream that does not print on a clock, where the page is not thinned out.
    """
    paced = kind(stream.name) in PACED
    if (whole and not paced) or not len(stream.gap):
        return np.ones(len(stream.gap), dtype=np.bool_)
    # 1 ns less: what the log calls 0.100 shall be one of them.
    keep: Bools = stream.gap >= (KEPT_PACED if paced else KEPT) - 1e-9
    second = np.floor(stream.elapsed)
    order = np.lexsort((stream.gap, second))
    keep[order[np.append(np.diff(second[order]) > 0, True)]] = True
    keep[0] = True
    return keep


def _panel(panel: Panel, run: Run, whole: bool, times: list[list[int]]) -> dict[str, Any]:
    curves = []
    scale = SCALES.get(panel.unit, OTHER_SCALE)
    for curve in panel.curves:
        found = curve.read(run)
        one: dict[str, Any] = {"name": curve.name}
        if found is not None:
            stamps, values = found if whole else _thinned(*found, panel.unit == "pages")
            deltas = _deltas(stamps)
            if deltas not in times:
                times.append(deltas)
            one |= {"t": times.index(deltas), "y": _scaled(values, scale)}
        curves.append(one)
    return {
        "title": panel.title.replace("\n", " "),
        "unit": panel.unit,
        "scale": scale,
        "curves": curves,
    }


def _scaled(values: Floats, scale: float) -> list[int | None]:
    if np.isfinite(values).all():
        return list(_whole(values / scale))
    return [round(value / scale) if np.isfinite(value) else None for value in values.tolist()]


def _thinned(stamps: Floats, values: Floats, peaks: bool) -> tuple[Floats, Floats]:
    """At most SAMPLES values: of each group the highest (peaks), or the average over its time."""
    size = -(-len(values) // SAMPLES)
    if size < 2:
        return stamps, values
    begins = np.arange(0, len(values), size)
    edges = len(stamps) > len(values)
    if peaks:
        found = np.maximum.reduceat(values, begins)
    else:
        weight = np.diff(stamps) if edges else np.ones(len(values))
        found = np.add.reduceat(values * weight, begins) / np.add.reduceat(weight, begins)
    return (np.append(stamps[begins], stamps[-1]) if edges else stamps[begins]), found


@dataclass(frozen=True)
class Spans:
    """Times of the stalls, seconds; one value each."""

    begin: Floats
    end: Floats


def _stalls(
    run: Run, streams: list[Stream], whole: bool, why: RunCauses | None
) -> list[dict[str, Any]]:
    """Every stall in order of time, its causes, and what the counters did in the meantime."""
    found: list[dict[str, Any]] = []
    most = None if whole else TOLD
    told = [*why.cards[:most], *why.others[:most]] if why else []
    cards = {card.stall: card for card in told}
    for index, stream in enumerate(streams):
        long = threshold(stream)
        lines = np.flatnonzero(stream.gap >= long)
        texts = stream.lines if whole and (len(lines) or stream.open_gap >= long) else None
        for place, stall in enumerate(stalls(stream, long)):
            line = int(lines[place]) if place < len(lines) else len(stream.elapsed)
            one: dict[str, Any] = {
                "stream": index,
                "begin": _ms(stall.begin),
                "length": _ms(stall.length),
                "line": line + 1,
                "open": int(stall.open),
            }
            if why:
                card = cards.get(stall)
                one["why"] = card and causes_text.in_a_line(RunCauses([], card.seconds))
            if texts is not None:
                one["before"] = plain(texts[line - 1]) if line else None
                one["after"] = None if stall.open else plain(texts[line])
            found.append(one)
    found.sort(key=lambda each: (each["begin"], each["stream"]))
    begin, length = (np.array([each[key] for each in found]) / 1000 for key in ("begin", "length"))
    spans = Spans(begin, begin + length)
    figures: list[list[Any]] = [*(_moved(run, one, spans) for one in MOVED), _writeback(run, spans)]
    figures += [_pressure(run, name, spans) for name in PRESSURES]
    for place, each in enumerate(found):
        each["counters"] = [figure[place] for figure in figures]
    return found


def _columns(rows: list[dict[str, Any]]) -> dict[str, list[Any]]:
    """A list for each key of the rows, which all have the same."""
    return {key: [row[key] for row in rows] for key in (rows[0] if rows else ("stream",))}


def _grown(run: Run, table: str, name: str, spans: Spans) -> tuple[Floats, Floats] | None:
    """How much the counter grew in each span, and over how many of its seconds that is known.

    Between two samples it is taken to grow evenly. None if it is not available or went back.
    """
    column = run.column(table, name)
    if column is None or len(column[1]) < 2 or np.any(np.diff(column[1]) < 0):
        return None
    stamps, values = column
    begin, end = (np.clip(edge, stamps[0], stamps[-1]) for edge in (spans.begin, spans.end))
    return np.interp(end, stamps, values) - np.interp(begin, stamps, values), end - begin


def _moved(run: Run, counter: counters.Counter, spans: Spans) -> list[list[float] | None]:
    """MiB and MiB/s of each span; None where no sample tells."""
    grown = _grown(run, counter.table, counter.name, spans)
    if grown is None:
        return [None] * len(spans.begin)
    return [
        [round(amount / counter.per_mib, 1), round(amount / counter.per_mib / known, 2)]
        if known > 0
        else None
        for amount, known in zip(*(each.tolist() for each in grown), strict=True)
    ]


def _pressure(run: Run, name: str, spans: Spans) -> list[float | None]:
    """Per cent of each span's time."""
    grown = _grown(run, "psi", name, spans)
    if grown is None:
        return [None] * len(spans.begin)
    return [
        round(amount / US_PER_PERCENT / known, 1) if known > 0 else None
        for amount, known in zip(*(each.tolist() for each in grown), strict=True)
    ]


def _writeback(run: Run, spans: Spans) -> list[int | None]:
    """The highest sample of nr_writeback in each span; None where there is none."""
    column = run.column("vmstat", "nr_writeback")
    if column is None:
        return [None] * len(spans.begin)
    first = np.searchsorted(column[0], spans.begin, side="left").tolist()
    last = np.searchsorted(column[0], spans.end, side="right").tolist()
    return [
        round(float(column[1][a:b].max())) if a < b else None
        for a, b in zip(first, last, strict=True)
    ]


def _averages(run: Run) -> list[float | None]:
    """Of the whole run, in the order of a stall's counters: MiB/s, peak in pages, per cent."""
    everything = Spans(np.array([-np.inf]), np.array([np.inf]))
    moved = [_moved(run, one, everything)[0] for one in MOVED]
    return [
        *(None if one is None else one[1] for one in moved),
        _writeback(run, everything)[0],
        *(_pressure(run, name, everything)[0] for name in PRESSURES),
    ]
