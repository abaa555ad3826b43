# SPDX-License-Identifier: GPL-2.0-or-later
"""The evidence of one run, of which each table is read when it is asked for, and once."""

from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from analysis.reading.counter_tables import Table
from analysis.reading.evidence_tables import (
    Failure,
    Look,
    Task,
    read_failures,
    read_looks,
    read_tasks,
    read_trace,
)

KEPT = 4  # runs whose tables are in memory: those of the ones before are read again, if need be
T = TypeVar("T")
_recent: "deque[Evidence]" = deque()


class Evidence:
    """What the evidence observer left in a run's folder; None for a table that is not there."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._tables: dict[Callable[[Path, list[str]], Any], tuple[Any, list[str]]] = {}

    def __reduce__(self) -> tuple[type["Evidence"], tuple[Path]]:
        """Another process reads for itself."""
        return Evidence, (self._folder,)

    def table(self, read: Callable[[Path, list[str]], T]) -> tuple[T, list[str]]:
        """What this reader makes of its table, and what could not be read of it."""
        if read not in self._tables:
            if not self._tables:
                _recent.append(self)
            if len(_recent) > KEPT:
                _recent.popleft()._tables.clear()
            problems: list[str] = []
            self._tables[read] = read(self._folder, problems), problems
        return self._tables[read]

    @property
    def tasks(self) -> list[Task] | None:
        """The tasks with their clocks."""
        return self.table(read_tasks)[0]

    @property
    def looks(self) -> list[Look] | None:
        """The looks at tasks, in order of time."""
        return self.table(read_looks)[0]

    @property
    def trace(self) -> Table | None:
        """The kernel's sums of its own events."""
        return self.table(read_trace)[0]

    @property
    def failures(self) -> list[Failure] | None:
        """The page allocations that failed."""
        return self.table(read_failures)[0]

    @property
    def tells(self) -> bool:
        """Whether there is anything that a stall's causes come from."""
        return not (self.tasks is None and self.looks is None and self.trace is None)

    @property
    def problems(self) -> list[str]:
        """What could not be read of all that stalls are explained by."""
        readers = (read_tasks, read_looks, read_trace, read_failures)
        return [problem for read in readers for problem in self.table(read)[1]]
