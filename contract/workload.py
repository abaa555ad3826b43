# SPDX-License-Identifier: GPL-2.0-or-later
"""What a run says of its workload, `workload` of meta.json (docs/reference/results-format.md).

A run without it is of the desktop, the only workload that there was before; unless its parameters
name another one, which then did not live to say what it is.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

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


@dataclass(frozen=True)
class Figure:
    """A number that the workload measures by itself, once a run; digits: its decimals."""

    key: str
    title: str
    unit: str
    digits: int
    better: Better

    def as_meta(self) -> dict[str, Any]:
        """As it stands in meta.json."""
        return {
            "key": self.key,
            "title": self.title,
            "unit": self.unit,
            "digits": self.digits,
            "better": self.better,
        }


@dataclass(frozen=True)
class Recorded:
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

    def as_meta(self) -> dict[str, Any]:
        """As it stands in meta.json."""
        return {
            "key": self.key,
            "columns": list(self.columns),
            "since": self.since,
            "until": self.until,
            "divisor": self.divisor,
            "share_of": list(self.share_of),
        }


@dataclass(frozen=True)
class Late:
    """A figure of a stream whose lines say how late they were (`late S`).

    of: `worst`, the latest one's seconds; `missed`, how many were later than its kind may be;
    `again`: of all streams of that kind, seconds from `since` (the key of a figure that is a
    moment) until none was late by a stall any more.
    """

    key: str
    stream: str
    of: Literal["worst", "missed", "again"]
    since: str = ""

    def as_meta(self) -> dict[str, Any]:
        """As it stands in meta.json."""
        since = {"since": self.since} if self.since else {}
        return {"key": self.key, "stream": self.stream, "of": self.of, **since}


@dataclass(frozen=True)
class TableRow:
    """A row of a table: the key of a figure for each column; "": an empty cell."""

    title: str
    figures: tuple[str, ...]

    def as_meta(self) -> dict[str, Any]:
        """As it stands in meta.json."""
        return {"title": self.title, "figures": list(self.figures)}


@dataclass(frozen=True)
class FigureTable:
    """The figures in the form in which they are told: rows under a title.

    `better`: of each column "lower", "higher", or "" where neither is; (): of none. A comparison
    has the change of the mean only of those that have a direction. `of_failed`: a mean is of the
    runs that failed, too, as far as they got: for what only a failed run has, such as a kill.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[TableRow, ...]
    better: tuple[str, ...] = ()
    of_failed: bool = False

    def as_meta(self) -> dict[str, Any]:
        """As it stands in meta.json."""
        return {
            "title": self.title,
            "columns": list(self.columns),
            "rows": [row.as_meta() for row in self.rows],
            **({"better": list(self.better)} if self.better else {}),
            **({"of_failed": True} if self.of_failed else {}),
        }


@dataclass(frozen=True)
class Curve:
    """What is drawn over time: a column of a sampled table, or a number that a stream prints.

    table: `vmstat` of vmstat.tsv; or stream: one whose lines have the words `COLUMN=NUMBER`. per:
    what a value is divided by; rate: how much it grows a second, not the value.
    """

    title: str
    column: str
    table: str = ""
    stream: str = ""
    rate: bool = False
    per: float = 1.0

    def as_meta(self) -> dict[str, Any]:
        """As it stands in meta.json."""
        source = {"table": self.table} if self.table else {"stream": self.stream}
        return {
            "title": self.title,
            "column": self.column,
            **source,
            "rate": self.rate,
            "per": self.per,
        }


@dataclass(frozen=True)
class Panel:
    """Curves of one unit over one another."""

    title: str
    unit: str
    curves: tuple[Curve, ...]

    def as_meta(self) -> dict[str, Any]:
        """As it stands in meta.json."""
        return {
            "title": self.title,
            "unit": self.unit,
            "curves": [curve.as_meta() for curve in self.curves],
        }


@dataclass(frozen=True)
class Description:
    """A workload: its streams whose silences count, and what it measures by itself.

    `subject`: what one of these streams is called; `primary`: key of the metric that the verdicts
    are about, one of the suite's or of `figures`; `recorded`: what the observers have beside those;
    `late`: how late streams were; `settled`: what its parameters leave to the machine, as that has
    decided it: runs that differ in it are not compared; `panels`: what is drawn over time;
    `phases`: the stream whose lines begin with `PHASE: `, "" if none does.
    """

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

    def as_meta(self) -> dict[str, Any]:
        """As it stands in meta.json."""
        return {
            "name": self.name,
            "summary": self.summary,
            "subject": self.subject,
            "subjects": list(self.subjects),
            "primary": self.primary,
            "figures": [figure.as_meta() for figure in self.figures],
            "tables": [table.as_meta() for table in self.tables],
            "recorded": [one.as_meta() for one in self.recorded],
            **({"late": [one.as_meta() for one in self.late]} if self.late else {}),
            **({"settled": self.settled} if self.settled else {}),
            **({"panels": [panel.as_meta() for panel in self.panels]} if self.panels else {}),
            **({"phases": self.phases} if self.phases else {}),
        }
