# SPDX-License-Identifier: GPL-2.0-or-later
"""Curves over time that a workload defines: columns of tables, numbers in a stream's lines."""

import re

import numpy as np

from analysis.figures.counters import grown
from analysis.reading.latency_log import Floats
from analysis.reading.load import Run
from analysis.reading.words import safe_line
from contract.workload import Curve

PHASE = re.compile(r"([A-Za-z0-9._-]{1,40}): ")


def points(run: Run, curve: Curve) -> tuple[Floats, Floats] | None:
    """Elapsed (s) and values (the panel's unit) of a curve; None: not available.

    A rate has edges instead of elapsed, one more than values, and is NaN where the value went back.
    """
    column = _printed(run, curve) if curve.stream else run.column(curve.table, curve.column)
    if column is None:
        return None
    stamps, values = column
    return grown(stamps, values, curve.per) if curve.rate else (stamps, values / curve.per)


def phases(run: Run) -> list[tuple[float, str]]:
    """(elapsed s of its first line, name) of each phase of the workload, in order."""
    stream = run.streams.get(run.workload.phases)
    begins: list[tuple[float, str]] = []
    for elapsed, line in zip(stream.elapsed, stream.lines, strict=True) if stream else ():
        match = PHASE.match(line)
        if match and (not begins or begins[-1][1] != match[1]):
            begins.append((float(elapsed), safe_line(match[1], 40)))
    return begins


def _printed(run: Run, curve: Curve) -> tuple[Floats, Floats] | None:
    """When lines of the stream give this column a number (elapsed s), and the numbers."""
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
