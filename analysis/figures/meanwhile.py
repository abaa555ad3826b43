# SPDX-License-Identifier: GPL-2.0-or-later
"""Reads the figures that a workload printed while it ran, a line each second.

docs/reference/results-format.md
"""

import math
import re

from analysis.reading.load import Run
from contract.workload import MEANWHILE

MOST_LINES = 100_000  # of a stream: a run of a day prints fewer
PAIR = re.compile(r"([^\s=]{1,64})=([0-9][0-9.e+-]{0,20})")
Figures = dict[str, float]  # by key, each in its own unit


def lines_of(run: Run) -> list[Figures]:
    """Key -> figure, in its own unit, for each line in order; a missing key is not available."""
    lines: list[Figures] = []
    if not run.workload.tables:
        return lines
    for name, stream in run.streams.items():
        if name in run.workload.subjects:
            continue
        texts = [line for line in stream.lines if line.startswith(f"{MEANWHILE} ")]
        lines += [_figures(line) for line in texts[:MOST_LINES]]
    return lines


def _figures(line: str) -> Figures:
    figures: Figures = {}
    for word in line.split()[1:]:
        if pair := PAIR.fullmatch(word):
            try:
                value = float(pair[2])
            except ValueError:
                continue
            if math.isfinite(value):
                figures[pair[1]] = value
    return figures
