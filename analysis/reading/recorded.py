# SPDX-License-Identifier: GPL-2.0-or-later
"""Figures that a workload takes from the run's trace.tsv: by how much columns grew.

A figure that is not known is left out, it is not zero: the kernel lacks the columns, the workload
did not reach the moment, or the trace ended before it.
"""

from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase

import numpy as np

from analysis.reading.counter_tables import Table
from analysis.reading.evidence import Evidence
from analysis.reading.streams import STALL, Stream
from contract.run_files import STAMP
from contract.workload import Late, Recorded

REACH_S = 1.0  # s after the last row up to which that row still counts


def recorded(
    evidence: Evidence,
    wanted: Sequence[Recorded],
    own_figures: Mapping[str, float],
    t0: float | None,
) -> dict[str, float]:
    """Key -> figure, in the figure's unit.

    own_figures: of the run; moments among them, like t0, are seconds of CLOCK_MONOTONIC.
    """
    trace = evidence.trace if wanted and t0 is not None else None
    if trace is None or t0 is None:
        return {}
    figures = {figure.key: _figure(trace, figure, own_figures, t0) for figure in wanted}
    return {key: value for key, value in figures.items() if value is not None}


def answered(
    streams: Iterable[Stream],
    wanted: Sequence[Late],
    own_figures: Mapping[str, float],
    t0: float | None,
) -> dict[str, float]:
    """Key -> seconds from a moment until streams were late by STALL for the last time (`again`).

    A stream that stalls at its end counts as late until then. 0: no stream was late. own_figures,
    t0: see `recorded`.
    """
    seconds = {}
    for figure in wanted:
        if figure.of != "again" or figure.since not in own_figures or t0 is None:
            continue
        begin = own_figures[figure.since] - t0
        last = [begin]
        for stream in streams:
            if stream.name.partition("-")[0] != figure.stream or stream.late is None:
                continue
            last += stream.elapsed[stream.late >= STALL].tolist()
            last += [stream.until] if stream.open_gap >= STALL else []
        seconds[figure.key] = max(last) - begin
    return seconds


def _figure(
    trace: Table, figure: Recorded, own_figures: Mapping[str, float], t0: float
) -> float | None:
    if any(key and key not in own_figures for key in (figure.since, figure.until)):
        return None
    begin = own_figures[figure.since] - t0 if figure.since else 0.0
    end = own_figures[figure.until] - t0 if figure.until else float(trace.columns[STAMP][-1])
    grown = _grown(trace, figure.columns, begin, end)
    if not figure.share_of or grown is None:
        return None if grown is None else grown / figure.divisor
    whole = _grown(trace, figure.share_of, begin, end)
    return 100 * grown / whole if whole else None


def _grown(trace: Table, patterns: Iterable[str], begin: float, end: float) -> float | None:
    """By how much the matching columns grew together, in the trace's unit; None if not known.

    From the last row before `begin` (or the first row) to the first row after `end`; elapsed s.
    """
    growths = [
        _between(trace, name, begin, end)
        for name in trace.names
        if any(fnmatchcase(name, pattern) for pattern in patterns)
    ]
    known = [growth for growth in growths if growth is not None]
    return sum(known) if known and len(known) == len(growths) else None


def _between(trace: Table, name: str, begin: float, end: float) -> float | None:
    values = trace.get(name)
    if values is None:
        return None
    good = np.isfinite(values)
    stamps, values = trace.columns[STAMP][good], values[good]
    if len(stamps) < 2 or end > stamps[-1] + REACH_S or begin > stamps[-1]:
        return None
    first = max(0, int(np.searchsorted(stamps, begin, side="right")) - 1)
    last = min(len(stamps) - 1, int(np.searchsorted(stamps, end, side="left")))
    grown = float(values[last] - values[first])
    return grown if grown >= 0 else None
