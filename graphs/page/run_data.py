# SPDX-License-Identifier: GPL-2.0-or-later
"""A run's data for the page: its streams, counters and stalls, as integers.

Times are in ms, as differences from the previous time; a curve's values are multiples of its
`scale`. For a stream that prints on a clock it has the gaps of at least KEPT_PACED and the longest
gap of each second. With hundreds of runs the data is thinned out (`whole` is False), but keeps
every stall, and every gap of at least KEPT of the other streams.
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
from analysis.reading.words import safe_line
from analysis.stall_causes.causes import RunCauses
from analysis.text import causes as causes_text
from contract.run_files import HEARTBEAT, PLAYER
from graphs.pictures.panels import Panel, panels_of

KEPT = 0.1  # s: a gap of this length is never thinned out
KEPT_PACED = 1.5 * PACE  # s: the same for a stream that prints on a clock
TOLD = 10  # longest stalls (of subjects, of others) with causes, if the page is thinned out
SAMPLES = 180  # values per curve, if the page is thinned out
SCALES = {"pages": 1.0, "MiB/s": 0.01, "%": 0.1, "MiB": 0.1}
OTHER_SCALE = 0.1
MOVED = (counters.SWAP_IN, counters.SWAP_OUT, counters.PAGE_IN, counters.PAGE_OUT)
PRESSURES = ("memory_some_us", "memory_full_us")
US_PER_PERCENT = 10_000.0  # of a second
Bools = NDArray[np.bool_]


def run_block(run: Run, whole: bool, why: RunCauses | None = None) -> dict[str, Any]:
    """The data that the page shows of a run when it is selected; why: its causes."""
    streams = list(run.streams.values())
    subjects = {stream.name for stream in run.subjects}
    times: list[list[int]] = []  # shared, as most curves have the same times
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
    """The least gap of this stream that is a stall, in seconds."""
    if kind(stream.name) == HEARTBEAT:
        return PACE + BEAT_TOLERANCE
    return PACE + SKIP_TOLERANCE if kind(stream.name) == PLAYER else STALL


def _ms(seconds: float) -> int:
    return round(1000 * seconds)


def _whole(values: Floats) -> list[int]:
    integers: list[int] = np.rint(values).astype(np.int64).tolist()
    return integers


def _deltas(stamps: Floats) -> list[int]:
    """Seconds as ms, each (also the first) as the difference from the previous one."""
    return np.diff(np.rint(1000 * stamps).astype(np.int64), prepend=0).tolist()  # type: ignore[no-any-return]


def _stream(stream: Stream, whole: bool) -> dict[str, Any]:
    keep = _kept(stream, whole)
    data: dict[str, Any] = {
        "name": safe_line(stream.name, 40),
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
    # If no line is missing, a gap is the time since the previous line.
    data["gaps"] = None if gaps == [*_first_step(data), *data["t"][1:]] else gaps
    return data


def _first_step(found: dict[str, Any]) -> list[int]:
    return [found["t"][0] - found["begin"]] if found["t"] else []


def _kept(stream: Stream, whole: bool) -> Bools:
    """Which lines to keep: all, or those after a long gap and the longest gap of each second.

    All are kept only if the page is not thinned out and the stream does not print on a clock.
    """
    paced = kind(stream.name) in PACED
    if (whole and not paced) or not len(stream.gap):
        return np.ones(len(stream.gap), dtype=np.bool_)
    # 1 ns less, so that a logged 0.100 counts despite rounding.
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
        points = curve.read(run)
        data: dict[str, Any] = {"name": curve.name}
        if points is not None:
            stamps, values = points if whole else _thinned(*points, panel.unit == "pages")
            deltas = _deltas(stamps)
            if deltas not in times:
                times.append(deltas)
            data |= {"t": times.index(deltas), "y": _scaled(values, scale)}
        curves.append(data)
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
    """At most SAMPLES values: each group's maximum (peaks), or its time-weighted average."""
    size = -(-len(values) // SAMPLES)
    if size < 2:
        return stamps, values
    begins = np.arange(0, len(values), size)
    edges = len(stamps) > len(values)
    if peaks:
        reduced = np.maximum.reduceat(values, begins)
    else:
        weight = np.diff(stamps) if edges else np.ones(len(values))
        reduced = np.add.reduceat(values * weight, begins) / np.add.reduceat(weight, begins)
    return (np.append(stamps[begins], stamps[-1]) if edges else stamps[begins]), reduced


@dataclass(frozen=True)
class Spans:
    """Begins and ends of stalls, in seconds, one value per stall."""

    begin: Floats
    end: Floats


def _stalls(
    run: Run, streams: list[Stream], whole: bool, why: RunCauses | None
) -> list[dict[str, Any]]:
    """All stalls in order of time, with their causes and the counters' changes during them."""
    rows: list[dict[str, Any]] = []
    most = None if whole else TOLD
    listed = [*why.cards[:most], *why.others[:most]] if why else []
    cards = {card.stall: card for card in listed}
    for index, stream in enumerate(streams):
        long = threshold(stream)
        lines = np.flatnonzero(stream.gap >= long)
        texts = stream.lines if whole and (len(lines) or stream.open_gap >= long) else None
        for place, stall in enumerate(stalls(stream, long)):
            line = int(lines[place]) if place < len(lines) else len(stream.elapsed)
            item: dict[str, Any] = {
                "stream": index,
                "begin": _ms(stall.begin),
                "length": _ms(stall.length),
                "line": line + 1,
                "open": int(stall.open),
            }
            if why:
                card = cards.get(stall)
                item["why"] = card and causes_text.in_a_line(RunCauses([], card.seconds))
            if texts is not None:
                item["before"] = safe_line(texts[line - 1]) if line else None
                item["after"] = None if stall.open else safe_line(texts[line])
            rows.append(item)
    rows.sort(key=lambda row: (row["begin"], row["stream"]))
    begin, length = (np.array([row[key] for row in rows]) / 1000 for key in ("begin", "length"))
    spans = Spans(begin, begin + length)
    figures: list[list[Any]] = [
        *(_moved(run, item, spans) for item in MOVED),
        _writeback(run, spans),
    ]
    figures += [_pressure(run, name, spans) for name in PRESSURES]
    for place, row in enumerate(rows):
        row["counters"] = [figure[place] for figure in figures]
    return rows


def _columns(rows: list[dict[str, Any]]) -> dict[str, list[Any]]:
    """A list for each key of the rows, which all have the same keys."""
    return {key: [row[key] for row in rows] for key in (rows[0] if rows else ("stream",))}


def _grown(run: Run, table: str, name: str, spans: Spans) -> tuple[Floats, Floats] | None:
    """The growth of a counter in each span, and the known part of each span, in seconds.

    Assumes even growth between samples. None if the counter is not available or decreased.
    """
    column = run.column(table, name)
    if column is None or len(column[1]) < 2 or np.any(np.diff(column[1]) < 0):
        return None
    stamps, values = column
    begin, end = (np.clip(edge, stamps[0], stamps[-1]) for edge in (spans.begin, spans.end))
    return np.interp(end, stamps, values) - np.interp(begin, stamps, values), end - begin


def _moved(run: Run, counter: counters.Counter, spans: Spans) -> list[list[float] | None]:
    """MiB and MiB/s of each span; None for spans without samples."""
    grown = _grown(run, counter.table, counter.name, spans)
    if grown is None:
        return [None] * len(spans.begin)
    return [
        [round(amount / counter.per_mib, 1), round(amount / counter.per_mib / known, 2)]
        if known > 0
        else None
        for amount, known in zip(*(part.tolist() for part in grown), strict=True)
    ]


def _pressure(run: Run, name: str, spans: Spans) -> list[float | None]:
    """Pressure in each span, in percent of its time; None if unknown."""
    grown = _grown(run, "psi", name, spans)
    if grown is None:
        return [None] * len(spans.begin)
    return [
        round(amount / US_PER_PERCENT / known, 1) if known > 0 else None
        for amount, known in zip(*(part.tolist() for part in grown), strict=True)
    ]


def _writeback(run: Run, spans: Spans) -> list[int | None]:
    """The highest sample of nr_writeback in each span, in pages; None without samples."""
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
    """The whole run's counters, in the order of a stall's: MiB/s, peak in pages, percent."""
    everything = Spans(np.array([-np.inf]), np.array([np.inf]))
    moved = [_moved(run, one, everything)[0] for one in MOVED]
    return [
        *(None if one is None else one[1] for one in moved),
        _writeback(run, everything)[0],
        *(_pressure(run, name, everything)[0] for name in PRESSURES),
    ]
