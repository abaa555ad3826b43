# SPDX-License-Identifier: GPL-2.0-or-later
"""The hosts' states: the runs that each has done, those that are left out; their live table."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from errors import printable
from run.estimates import durations

if TYPE_CHECKING:
    from rich.table import Table

MOST_CUT = 3  # runs in a row that were cut short on a host, after which it is left out


@dataclass
class HostRow:
    """A host. runs: (title, progress); done: number of runs with a result; waiting: in a queue."""

    name: str
    runs: list[tuple[str, str]] = field(default_factory=list)
    done: int = 0
    note: str = ""
    waiting: int = 0
    cut_in_a_row: int = 0

    @property
    def cells(self) -> tuple[str, str, str, str]:
        """The cells of its row in the table."""
        runs = [f"{title}: {how}" if how else title for title, how in self.runs]
        runs += [f"{self.waiting} runs wait"] if self.waiting else []
        return self.name, "\n".join(runs), str(self.done or ""), self.note


class HostRows:
    """A row for each host. say: prints the line about a host that is left out."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self.left_out: set[str] = set()
        self._say = say
        self._rows: dict[str, HostRow] = {}

    def of(self, name: str) -> HostRow:
        """The host's row."""
        return self._rows.setdefault(name, HostRow(name))

    def doing(self, runs: Mapping[str, list[tuple[str, str]]]) -> list[HostRow]:
        """All rows, sorted by name; runs: host -> its current runs."""
        for name in runs:
            self.of(name)
        for row in self._rows.values():
            row.runs = runs.get(row.name, [])
        return [self._rows[name] for name in sorted(self._rows)]

    def finished(self, name: str) -> None:
        """Count a run that the host has done."""
        row = self.of(name)
        row.done, row.cut_in_a_row = row.done + 1, 0

    def cut(self, name: str, why: str) -> None:
        """Count a run that was cut short there, for a reason that may be the host's."""
        row = self.of(name)
        row.cut_in_a_row += 1
        if row.cut_in_a_row >= MOST_CUT:
            self.leave_out(name, f"{MOST_CUT} runs in a row were cut short there: {why}")

    def leave_out(self, name: str, why: str) -> None:
        """Leave the host out: it gets no more runs."""
        if name not in self.left_out:
            self.left_out.add(name)
            self.of(name).note = f"left out: {why}"
            self._say(f"{name} is left out: {why}")


class Ending:
    """Estimates when a campaign ends, from the durations of its runs on all hosts."""

    def __init__(self, slots: int) -> None:
        self._slots = max(1, slots)
        self._seconds = self._runs = 0.0

    def note(self, seconds: float) -> None:
        """Note a run's duration in seconds."""
        self._seconds += seconds
        self._runs += 1

    def words(self, left: int) -> str:
        """The number of runs left, with the running ones, and when they will be done."""
        if not left:
            return ""
        text = f"{left} runs left"
        if not self._runs:
            return f"{text}; no time estimate until one run has finished"
        about = self._seconds / self._runs * max(1.0, left / self._slots)
        at = time.strftime("%H:%M", time.localtime(time.time() + about))
        return f"{text}; about {durations.words(about)}, until {at}"


def table_of(rows: Sequence[HostRow], left: str) -> "Table":
    """The table: a row for each host, and a last row about the runs that are left."""
    from rich.table import Table
    from rich.text import Text

    table = Table("host", "runs", "done", "", title="hosts", title_justify="left")
    for row in rows:
        table.add_row(*(Text(printable(cell)) for cell in row.cells))
    if left:
        table.add_section()
        table.add_row("", Text(left), "", "")
    return table
