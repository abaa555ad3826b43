# SPDX-License-Identifier: GPL-2.0-or-later
"""Does jobs on other machines: what hosts reached by ssh and the nodes of Slurm have in common.

It keeps the jobs that wait, reports each job that ended, and knows which hosts get no more jobs.
"""

import contextlib
import queue
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

from contract.run_files import ABORTED
from contract.run_record import write_status
from errors import UserError
from run.jobs import plan_file
from run.jobs.hosts_table import Ending, HostRow, HostRows, table_of
from run.jobs.job import Job
from run.jobs.progress import Progress
from run.jobs.workers import Ended
from run.live import Display

if TYPE_CHECKING:
    from rich.table import Table

KNOWN_S = 30.0  # in which a campaign that is gone on with asks for what others have of it


@dataclass
class Task:
    """A job that was submitted.

    unwanted: tells whether the runner wants the job cut short; entry: the job in its plan.
    """

    job: Job
    run: Path
    screen: Display
    unwanted: Callable[[], bool]
    entry: Mapping[str, Any]
    identity: str
    cancelled: bool = False
    progress: Progress = field(default_factory=Progress)  # at the last look

    @property
    def key(self) -> tuple[Path, int]:
        """What tells its run from all others, whichever attempt it is."""
        return self.run.parent, self.job.number

    def is_unwanted(self) -> bool:
        """Whether the job shall be cut short: it was cancelled, or the runner does not want it."""
        return self.cancelled or self.unwanted()


T = TypeVar("T", bound=Task)


class Blocks:
    """On the hosts' clocks: which host does the runs of one number, one of each variant.

    variants: how many a block has. runs: by "VARIANT/NUMBER" the hosts of those that are done.
    """

    def __init__(self, variants: int, runs: Mapping[str, str]) -> None:
        self.variants = variants
        self._holders = {int(name.rpartition("/")[2]): host for name, host in runs.items()}

    def holder(self, number: int) -> str:
        """The host that does these runs; empty if any may."""
        return self._holders.get(number, "")

    def hold(self, number: int, host: str) -> None:
        """The host does these runs from now on; "": any may."""
        self._holders[number] = host


class Elsewhere(Generic[T]):
    """Does jobs on other machines, at most at_once of them at a time.

    folder: the campaign's folder. done: called with each run and the host that did it. blocks: None
    if the guests have their own clocks.
    """

    attempts = 3
    here = False
    end_s = 60.0  # in which hosts that answer end what they do
    task_type: type[T]

    def __init__(
        self, at_once: int, folder: Path, done: Callable[[Path, str], None], blocks: Blocks | None
    ) -> None:
        # Of blocks there is a whole one for each host, so that each finds the next run of its own.
        self.slots, self.left = at_once * (blocks.variants if blocks else 1), 0
        self._folder, self._done, self._blocks = folder, done, blocks
        self._ending = Ending(at_once)
        self._hosts = HostRows(self._say)
        self._began: float | None = None  # when it was first asked for a job
        self._lock = threading.RLock()
        self._pending: list[T] = []
        self._over: queue.SimpleQueue[Ended] = queue.SimpleQueue()
        self._screen: Display | None = None  # of the last job, for what is about no job

    def submit(self, job: Job, run: Path, screen: Display, unwanted: Callable[[], bool]) -> None:
        """Put it into the row; if it is under way since before, that is followed."""
        self._screen, self._began = screen, self._began or time.monotonic()
        entry = plan_file.portable(job)
        where = str(run.parent.parent.relative_to(self._folder))
        identity = plan_file.identity(entry, where)
        with self._lock:
            self._take_in(self.task_type(job, run, screen, unwanted, entry, identity))

    def look(self, wait_s: float) -> list[Ended]:
        """The jobs that ended since; waits so long for one, if there is none."""
        over = []
        with contextlib.suppress(queue.Empty):
            over.append(self._over.get(timeout=wait_s))
            while True:
                over.append(self._over.get_nowait())
        return over

    def cancel(self, job: Job) -> None:
        """Have it cut short, wherever it is."""
        with self._lock:
            for task in [one for one in self._pending if one.job is job]:
                self._pending.remove(task)
                self._over.put(Ended(job, task.run, ABORTED, "interrupted before it began"))
            for task in [one for one in self._under_way() if one.job is job]:
                task.cancelled = True

    def shown(self) -> Self:
        """The hosts."""
        return self

    def table(self) -> "Table":
        """A row for each host, and one of how much is left."""
        return table_of(self._rows(), self._ending.words(self.left))

    def end(self) -> None:
        """Cut all jobs short, and wait until they are."""
        for task in [*self._pending, *self._under_way()]:
            self.cancel(task.job)
        until = time.monotonic() + self.end_s
        while self._is_busy() and time.monotonic() < until:
            self.look(0.2)
        while not self._over.empty():
            self._over.get_nowait()

    def _take_in(self, task: T) -> None:
        """A job was submitted."""
        self._pending.append(task)

    def _under_way(self) -> list[T]:
        """What was given to others and is not over."""
        raise NotImplementedError

    def _is_busy(self) -> bool:
        """Whether something goes on whose end can be waited for."""
        return bool(self._under_way())

    def _rows(self) -> list[HostRow]:
        raise NotImplementedError

    def _held_by(self, task: T) -> str:
        """The host that has to do it, since it does the other runs of its block; or empty."""
        holder = self._blocks.holder(task.job.number) if self._blocks else ""
        return "" if holder in self._hosts.left_out else holder

    def _hold(self, task: T, host: str) -> None:
        """A host has begun it, and does its block."""
        if self._blocks:
            self._blocks.hold(task.job.number, host)

    @property
    def _is_known_dropped(self) -> bool:
        """Whether nobody will ask any more for what was under way before us."""
        return self._began is not None and time.monotonic() - self._began > KNOWN_S

    def _finished(self, task: T, host: str, state: str, why: str, took_s: float | None) -> None:
        """It is over on that host, and what it left is here."""
        if state != ABORTED:
            self._hosts.finished(host)
            if took_s is not None:
                self._ending.note(took_s)
        self._over.put(Ended(task.job, task.run, state, f"{why} (on {host})"))

    def _aborted(self, task: T, why: str, host: str = "") -> None:
        """It left no result: its folder says why, and names no host."""
        if not task.run.exists():
            task.run.mkdir(parents=True)
            write_status(task.run, ABORTED, why, elapsed_s=None)
        told = f"{why} (on {host})" if host else why
        self._over.put(Ended(task.job, task.run, ABORTED, told, error=UserError(told)))

    def _say(self, text: str) -> None:
        if self._screen is not None:
            self._screen.say(text)
