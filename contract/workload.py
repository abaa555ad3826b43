# SPDX-License-Identifier: GPL-2.0-or-later
"""What a run says of its workload, `workload` of meta.json (docs/reference/results-format.md).

A run without it is of the desktop, unless its parameters name another workload, which then did not
live to say what it is.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

Better = Literal["lower", "higher"]
KEY, FIGURES = "workload", "figures"  # of meta.json: a description, and the numbers of the run
DESKTOP = "desktop"
# Of a line of a workload's own stream: KEY=VALUE … since the line before of that place, of figures
# in its tables (docs/reference/results-format.md).
MEANWHILE = "meanwhile"
STALLED = "stalled"  # key of the metric that the verdicts on a desktop are about


def named(meta: Mapping[str, Any]) -> str:
    """The workload that meta.json's parameters name: the desktop's if they name none."""
    parameters = meta.get("parameters")
    name = parameters.get("workload") if isinstance(parameters, dict) else None
    return name if isinstance(name, str) and name else DESKTOP


def is_described(meta: Mapping[str, Any]) -> bool:
    """Whether it is known what was run; not so of another workload that died before it said it."""
    return isinstance(meta.get(KEY), dict) or named(meta) == DESKTOP


class InMeta:
    """A part of it: meta.json has its fields, those in `optional` only where they say something."""

    optional: ClassVar[tuple[str, ...]] = ()

    def as_meta(self) -> dict[str, Any]:
        """As it stands in meta.json."""
        said = vars(self).items()
        return {key: _in_meta(one) for key, one in said if one or key not in self.optional}


def _in_meta(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_in_meta(one) for one in value]
    return value.as_meta() if isinstance(value, InMeta) else value


@dataclass(frozen=True)
class Figure(InMeta):
    """A number that the workload measures by itself, once a run; digits: its decimals."""

    key: str
    title: str
    unit: str
    digits: int
    better: Better


@dataclass(frozen=True)
class Recorded(InMeta):
    """A figure that the observers recorded: by how much columns of trace.tsv grew, added up.

    columns: names, with `*` for any part of one; none of them there: not available. since, until:
    keys of figures that are moments (seconds of CLOCK_MONOTONIC); "": the run's begin, its end.
    share_of: more columns; the figure is then percent of their growth.
    """

    key: str
    columns: tuple[str, ...]
    since: str = ""
    until: str = ""
    divisor: int = 1
    share_of: tuple[str, ...] = ()


@dataclass(frozen=True)
class Late(InMeta):
    """A figure of a stream whose lines say how late they were (`late S`).

    of: `worst`, the latest one's seconds; `missed`, how many were later than its kind may be;
    `again`: of all streams of that kind, seconds from `since` (the key of a figure that is a
    moment) until none was late by a stall any more.
    """

    optional = ("since",)

    key: str
    stream: str
    of: Literal["worst", "missed", "again"]
    since: str = ""


@dataclass(frozen=True)
class TableRow(InMeta):
    """A row of a table: the key of a figure for each column; "": an empty cell."""

    title: str
    figures: tuple[str, ...]


@dataclass(frozen=True)
class FigureTable(InMeta):
    """The figures in the form in which they are told: rows under a title.

    `better`: of each column "lower", "higher", or "" where neither is; (): of none. A comparison
    has the change of the mean only of those that have a direction. `of_failed`: a mean is of the
    runs that failed, too, as far as they got: for what only a failed run has, such as a kill.
    """

    optional = ("better", "of_failed")

    title: str
    columns: tuple[str, ...]
    rows: tuple[TableRow, ...]
    better: tuple[str, ...] = ()
    of_failed: bool = False


@dataclass(frozen=True)
class Curve(InMeta):
    """What is drawn over time: a column of a sampled table, or a number that a stream prints.

    table: `vmstat` of vmstat.tsv; or stream: one whose lines have the words `COLUMN=NUMBER`. per:
    what a value is divided by; rate: how much it grows a second, not the value.
    """

    optional = ("table", "stream")

    title: str
    column: str
    table: str = ""
    stream: str = ""
    rate: bool = False
    per: float = 1.0


@dataclass(frozen=True)
class Panel(InMeta):
    """Curves of one unit over one another."""

    title: str
    unit: str
    curves: tuple[Curve, ...]


@dataclass(frozen=True)
class Description(InMeta):
    """A workload: its streams whose silences count, and what it measures by itself.

    `subject`: what one of these streams is called; `primary`: key of the metric that the verdicts
    are about, one of the suite's or of `figures`; `recorded`: what the observers have beside those;
    `late`: how late streams were; `settled`: what its parameters leave to the machine, as that has
    decided it: runs that differ in it are not compared; `panels`: what is drawn over time;
    `phases`: the stream whose lines begin with `PHASE: `, "" if none does.
    """

    optional = ("late", "settled", "panels", "phases")

    name: str
    summary: str
    subject: str
    subjects: tuple[str, ...]
    primary: str = STALLED
    figures: tuple[Figure, ...] = ()
    tables: tuple[FigureTable, ...] = ()
    recorded: tuple[Recorded, ...] = ()
    late: tuple[Late, ...] = ()
    settled: str = ""
    panels: tuple[Panel, ...] = ()
    phases: str = ""
