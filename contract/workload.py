# SPDX-License-Identifier: GPL-2.0-or-later
"""A run's description of its workload: `workload` of meta.json (docs/reference/results-format.md).

A run without a description is of the desktop, unless its parameters name another workload: that
run died before it described its workload.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

Better = Literal["lower", "higher"]
KEY, FIGURES = "workload", "figures"  # keys of meta.json: the description, and the run's numbers
DESKTOP = "desktop"
# In a line of a workload's own stream, before KEY=VALUE …: figures of its tables since the previous
# line of the same place (docs/reference/results-format.md).
MEANWHILE = "meanwhile"
STALLED = "stalled"  # key of the metric that verdicts on the desktop compare


def named(meta: Mapping[str, Any]) -> str:
    """The workload that meta.json's parameters name; DESKTOP if they name none."""
    parameters = meta.get("parameters")
    name = parameters.get("workload") if isinstance(parameters, dict) else None
    return name if isinstance(name, str) and name else DESKTOP


def is_described(meta: Mapping[str, Any]) -> bool:
    """Whether the workload is known; not if it died before it wrote its description."""
    return isinstance(meta.get(KEY), dict) or named(meta) == DESKTOP


class InMeta:
    """A part of the description in meta.json, which omits empty fields that are in `optional`."""

    optional: ClassVar[tuple[str, ...]] = ()

    def as_meta(self) -> dict[str, Any]:
        """The JSON object in meta.json."""
        fields = vars(self).items()
        return {key: _in_meta(value) for key, value in fields if value or key not in self.optional}


def _in_meta(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_in_meta(item) for item in value]
    return value.as_meta() if isinstance(value, InMeta) else value


@dataclass(frozen=True)
class Figure(InMeta):
    """A number that the workload itself measures once per run; digits: number of decimals."""

    key: str
    title: str
    unit: str
    digits: int
    better: Better


@dataclass(frozen=True)
class Recorded(InMeta):
    """A figure that the observers recorded: the total growth of columns of trace.tsv.

    columns: names, `*` matches any part of a name; without any of them there is no figure. since,
    until: keys of figures that are moments (seconds of CLOCK_MONOTONIC); "": the run's start or
    end. share_of: other columns; the figure is then in percent of their growth.
    """

    key: str
    columns: tuple[str, ...]
    since: str = ""
    until: str = ""
    divisor: int = 1
    share_of: tuple[str, ...] = ()


@dataclass(frozen=True)
class Late(InMeta):
    """A figure of a stream whose lines report their lateness (`late S`, seconds).

    of: `worst`, the greatest lateness in seconds; `missed`, the number of lines later than the
    stream's kind allows; `again`, over all streams of that kind: seconds from `since` (the key of a
    figure that is a moment) until no line was late by a stall any more.
    """

    optional = ("since",)

    key: str
    stream: str
    of: Literal["worst", "missed", "again"]
    since: str = ""


@dataclass(frozen=True)
class TableRow(InMeta):
    """A row of a table: for each column the key of a figure; "": an empty cell."""

    title: str
    figures: tuple[str, ...]


@dataclass(frozen=True)
class FigureTable(InMeta):
    """A table of figures in a report: rows under a title.

    `better`: for each column "lower", "higher", or "" if neither is better; (): "" for all columns.
    A comparison has the change of the mean only for columns with a direction. `of_failed`: means
    include failed runs, as far as they got, for figures that only failed runs have (a kill).
    """

    optional = ("better", "of_failed")

    title: str
    columns: tuple[str, ...]
    rows: tuple[TableRow, ...]
    better: tuple[str, ...] = ()
    of_failed: bool = False


@dataclass(frozen=True)
class Curve(InMeta):
    """A curve over time: a column of a sampled table, or a number that a stream prints.

    table: `vmstat` means vmstat.tsv; or stream: its lines have the words `COLUMN=NUMBER`. per:
    divisor of the values; rate: draw the growth per second, not the value.
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
    """Curves of the same unit in one diagram."""

    title: str
    unit: str
    curves: tuple[Curve, ...]


@dataclass(frozen=True)
class Description(InMeta):
    """A workload: its streams whose stalls count, and what it measures itself.

    `subject`: the noun for such a stream; `primary`: key of the metric that verdicts compare, one
    of the suite's or of `figures`; `recorded`: further figures, from the observers; `late`: figures
    about late streams; `settled`: the values that the parameters left to the machine, as it chose
    them: runs that differ in them are not compared; `panels`: diagrams over time; `phases`: the
    stream whose lines begin with `PHASE: `, "" if none does.
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
