# SPDX-License-Identifier: GPL-2.0-or-later
"""The panels of a run's diagrams: those of every run, and those of its workload."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from analysis.figures import counters, curves
from analysis.reading.latency_log import Floats
from analysis.reading.load import Run
from contract.run_files import MEMINFO, STAMP

Edges = tuple[Floats, Floats]


@dataclass(frozen=True)
class Curve:
    """A curve of a panel; `read` returns (edges or stamps in s, values); None if not available."""

    name: str
    read: Callable[[Run], Edges | None]


@dataclass(frozen=True)
class Panel:
    """A panel of curves with the same unit."""

    title: str
    unit: str
    curves: tuple[Curve, ...]


def _rate(name: str, counter: counters.Counter) -> Curve:
    return Curve(name, lambda run: counters.rate(run, counter.table, counter.name, counter.per_mib))


def _pressure(name: str, column: str) -> Curve:
    # Microseconds per second: 10,000 are one percent.
    return Curve(name, lambda run: counters.rate(run, "psi", column, 10_000.0))


def _mib(name: str, *columns: str) -> Curve:
    """A curve in MiB: a column of meminfo, minus the other columns if there are any."""

    def read(run: Run) -> Edges | None:
        table = run.tables.get(MEMINFO)
        parts = [column for key in columns if table and (column := table.get(key)) is not None]
        if table is None or len(parts) < len(columns):
            return None
        return table.columns[STAMP], (parts[0] - sum(parts[1:])) / counters.KIB_PER_MIB

    return Curve(name, read)


ALWAYS = (
    Panel(
        "writeback",
        "pages",
        (Curve("nr_writeback", lambda run: run.column("vmstat", "nr_writeback")),),
    ),
    Panel(
        "swap IO",
        "MiB/s",
        (_rate("swap in", counters.SWAP_IN), _rate("swap out", counters.SWAP_OUT)),
    ),
    Panel(
        "page IO",
        "MiB/s",
        (_rate("page in", counters.PAGE_IN), _rate("page out", counters.PAGE_OUT)),
    ),
    Panel(
        "memory\npressure",
        "%",
        (_pressure("some stall", "memory_some_us"), _pressure("all stall", "memory_full_us")),
    ),
    Panel(
        "memory",
        "MiB",
        (_mib("free memory", "MemFree"), _mib("swap used", "SwapTotal", "SwapFree")),
    ),
)


def panels_of(run: Run) -> list[Panel]:
    """All panels of a run."""
    return [*ALWAYS, *own_panels(run)]


def own_panels(run: Run) -> list[Panel]:
    """The panels that the run's workload declares."""
    return [
        Panel(
            panel.title,
            panel.unit,
            tuple(
                Curve(curve.title, partial(curves.points, curve=curve)) for curve in panel.curves
            ),
        )
        for panel in run.workload.panels
    ]


def steps(stamps: Floats, values: Floats) -> Edges:
    """The points of a curve: steps if there is one stamp (edge) more than values.

    (Axes.stairs draws the same, but handles every corner in Python.)
    """
    if len(stamps) == len(values):
        return stamps, values
    return np.repeat(stamps, 2)[1:-1], np.repeat(values, 2)
