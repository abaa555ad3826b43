# SPDX-License-Identifier: GPL-2.0-or-later
"""Computes the cells of a workload's tables: for a run, or the means over a variant's runs.

A cell's key names a figure of the workload, the lateness of a stream, or a metric of the suite. A
cell without a value is not available.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from analysis.figures.metrics import BY_KEY, counted, deadlines, measure, whole
from analysis.reading.load import Run
from contract.workload import FigureTable, Late


@dataclass(frozen=True)
class Mean:
    """The mean of a figure, in its own unit, over the `runs` runs that have it."""

    value: float
    runs: int


@dataclass(frozen=True)
class Means:
    """Key -> mean for the cells of a table; `runs`: all runs, with or without a figure."""

    runs: int
    of: dict[str, Mean]

    @property
    def values(self) -> dict[str, float]:
        """Key -> mean, in the figure's own unit."""
        return {key: mean.value for key, mean in self.of.items()}


def keys(tables: Sequence[FigureTable]) -> list[str]:
    """The keys of all cells, without duplicates."""
    return list(dict.fromkeys(key for table in tables for row in table.rows for key in row.figures))


def of_run(run: Run, tables: Sequence[FigureTable]) -> dict[str, float]:
    """Key -> figure of the run for these tables, in its own unit, however the run ended."""
    wanted = keys(tables)
    suites = measure(run, [BY_KEY[key] for key in wanted if key in BY_KEY])
    late_figures = (
        figure for figure in run.workload.late if figure.key in wanted and figure.of != "again"
    )
    late = {figure.key: _late(run, figure) for figure in late_figures}
    known = {key: suites.get(key) if key in BY_KEY else run.figures.get(key) for key in wanted}
    known |= late
    return {
        key: value for key, value in known.items() if value is not None and math.isfinite(value)
    }


def _late(run: Run, one: Late) -> float | None:
    lateness = deadlines(run, one.stream)
    if lateness is None:
        return None
    return lateness.worst if one.of == "worst" else float(lateness.missed)


def over_runs(runs: Sequence[Run], tables: Sequence[FigureTable]) -> list[Means]:
    """The means of each table over the runs that completed.

    A table with `of_failed` also counts runs that failed or were cut at their limit.
    """
    figures = [(whole(run), of_run(run, tables)) for run in runs if counted(run)]
    return [
        _means(table, [by_key for is_whole, by_key in figures if table.of_failed or is_whole])
        for table in tables
    ]


def _means(table: FigureTable, run_figures: Sequence[Mapping[str, float]]) -> Means:
    means: dict[str, Mean] = {}
    for key in keys([table]):
        values = [figures[key] for figures in run_figures if key in figures]
        if values:
            means[key] = Mean(math.fsum(values) / len(values), len(values))
    return Means(len(run_figures), means)
