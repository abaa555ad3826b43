# SPDX-License-Identifier: GPL-2.0-or-later
"""The evidence of one run: each table is read when it is first needed, and only once."""

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

KEPT = 4  # runs whose tables stay in memory; tables of earlier runs are read again if needed
T = TypeVar("T")
_recent: "deque[Evidence]" = deque()


class Evidence:
    """The evidence in a run's folder; a property is None if its table is not there."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._tables: dict[Callable[[Path, list[str]], Any], tuple[Any, list[str]]] = {}

    def __reduce__(self) -> tuple[type["Evidence"], tuple[Path]]:
        """Pickle the folder only: another process reads the tables itself."""
        return Evidence, (self._folder,)

    def table(self, read: Callable[[Path, list[str]], T]) -> tuple[T, list[str]]:
        """The result of this reader, and the problems that it reported."""
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
        """The tasks with their clocks (µs)."""
        return self.table(read_tasks)[0]

    @property
    def looks(self) -> list[Look] | None:
        """The samples of tasks' states and stacks, in order of time."""
        return self.table(read_looks)[0]

    @property
    def trace(self) -> Table | None:
        """Cumulative counts and times (µs) of the kernel's trace events."""
        return self.table(read_trace)[0]

    @property
    def failures(self) -> list[Failure] | None:
        """The page allocations that failed, logged or not."""
        return self.table(read_failures)[0]

    @property
    def tells(self) -> bool:
        """Whether there is any evidence of the causes of stalls."""
        return not (self.tasks is None and self.looks is None and self.trace is None)

    @property
    def problems(self) -> list[str]:
        """What could not be read of the evidence."""
        readers = (read_tasks, read_looks, read_trace, read_failures)
        return [problem for read in readers for problem in self.table(read)[1]]
