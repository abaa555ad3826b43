# SPDX-License-Identifier: GPL-2.0-or-later
"""What is known of each job that hosts are to do, and of each host."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from run.hosts.hosts_table import HostRow
from run.hosts.one_host import OneHost
from run.hosts.progress import Progress
from run.jobs.job import Job
from run.live import Display


@dataclass
class Task:
    """A job that was submitted. unwanted: whether it is to be cut short."""

    job: Job
    run: Path
    screen: Display
    unwanted: Callable[[], bool]
    plan: Mapping[str, Any]
    identity: str
    cancelled: bool = False
    seen: bool = False  # by its host's looks
    progress: Progress = field(default_factory=Progress)  # at the last look
    began: float = 0.0  # on its host, by our monotonic clock

    @property
    def key(self) -> tuple[Path, int]:
        """What tells its run from all others, whichever attempt it is."""
        return self.run.parent, self.job.number

    def is_unwanted(self) -> bool:
        """Whether it is to be cut short, whoever wants that."""
        return self.cancelled or self.unwanted()


@dataclass
class HostState:
    """A host as its thread knows it. jobs: by their names there; known: not asked for yet."""

    host: OneHost
    known: dict[str, str] = field(default_factory=dict)  # identity: name
    jobs: dict[str, Task] = field(default_factory=dict)
    late: dict[str, Task] = field(default_factory=dict)  # given to others meanwhile
    answered: float = field(default_factory=time.monotonic)
    look_s: float = 0.0  # that the last look took
    silent: str = ""  # why it does not answer now
    ended: int = 0  # runs with a result
    cut_in_a_row: int = 0
    left_out: str = ""

    def row(self) -> HostRow:
        """What is shown of it."""
        runs = [(task.job.title, task.progress.words) for task in list(self.jobs.values())]
        how = self.left_out or (f"does not answer: {self.silent}" if self.silent else "")
        return HostRow(self.host.name, runs, self.ended, how)
