# SPDX-License-Identifier: GPL-2.0-or-later
"""What a workload lets be drawn over time: columns of tables, numbers in a stream's lines."""

import re

import numpy as np

from analysis.figures.counters import grown
from analysis.reading.latency_log import Floats
from analysis.reading.load import Run
from analysis.reading.words import plain
from contract.workload import Curve

PHASE = re.compile(r"([A-Za-z0-9._-]{1,40}): ")


def points(run: Run, curve: Curve) -> tuple[Floats, Floats] | None:
    """Elapsed and values (of a rate: edges, one more of them than of values); None: not available.

    Seconds; values in the panel's unit. A rate is NaN where the value went back.
    """
    column = _printed(run, curve) if curve.stream else run.column(curve.table, curve.column)
    if column is None:
        return None
    stamps, values = column
    return grown(stamps, values, curve.per) if curve.rate else (stamps, values / curve.per)


def phases(run: Run) -> list[tuple[float, str]]:
    """(elapsed of its first line, name) of each phase of the workload, in order."""
    stream = run.streams.get(run.workload.phases)
    begins: list[tuple[float, str]] = []
    for elapsed, line in zip(stream.elapsed, stream.lines, strict=True) if stream else ():
        match = PHASE.match(line)
        if match and (not begins or begins[-1][1] != match[1]):
            begins.append((float(elapsed), plain(match[1], 40)))
    return begins


def _printed(run: Run, curve: Curve) -> tuple[Floats, Floats] | None:
    """The numbers that the stream's lines give this column, when they were printed."""
    stream = run.streams.get(curve.stream)
    if stream is None:
        return None
    word = re.compile(rf"(?<!\S){re.escape(curve.column)}=(\d{{1,15}}(?:\.\d{{1,9}})?)(?!\S)")
    samples = [
        (elapsed, float(match[1]))
        for elapsed, line in zip(stream.elapsed, stream.lines, strict=True)
        if (match := word.search(line))
    ]
    if not samples:
        return None
    stamps, values = zip(*samples, strict=True)
    return np.array(stamps, dtype=np.float64), np.array(values, dtype=np.float64)
