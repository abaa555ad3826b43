# SPDX-License-Identifier: GPL-2.0-or-later
"""Does jobs on other machines: the common part of hosts reached by ssh and nodes of Slurm.

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

KNOWN_S = 30.0  # within which a resumed campaign claims its jobs on other machines


@dataclass
class Task:
    """A job that was submitted.

    unwanted: returns whether the runner wants the job cut short; entry: the job in its plan.
    """

    job: Job
    run: Path
    screen: Display
    unwanted: Callable[[], bool]
    entry: Mapping[str, Any]
    identity: str
    cancelled: bool = False
    progress: Progress = field(default_factory=Progress)  # as of the last look

    @property
    def key(self) -> tuple[Path, int]:
        """Identifies its run among all runs, for all its attempts."""
        return self.run.parent, self.job.number

    def is_unwanted(self) -> bool:
        """Whether to cut the job short: it was cancelled, or the runner does not want it."""
        return self.cancelled or self.unwanted()


T = TypeVar("T", bound=Task)


class Blocks:
    """With hosts' clocks: one host does all runs of a number, one of each variant (a block).

    variants: the number of runs in a block. runs: "VARIANT/NUMBER" -> host, of finished runs.
    """

    def __init__(self, variants: int, runs: Mapping[str, str]) -> None:
        self.variants = variants
        self._holders = {int(name.rpartition("/")[2]): host for name, host in runs.items()}

    def holder(self, number: int) -> str:
        """The host that does the runs of this number; empty if any host may."""
        return self._holders.get(number, "")

    def hold(self, number: int, host: str) -> None:
        """Give the runs of this number to the host; "": any host may do them."""
        self._holders[number] = host


class Elsewhere(Generic[T]):
    """Does jobs on other machines, at most at_once of them at a time.

    folder: the campaign's folder. done: called with each run and the host that did it. blocks: None
    if the guests have their own clocks.
    """

    attempts = 3
    here = False
    end_s = 60.0  # within which hosts that answer end their jobs
    task_type: type[T]

    def __init__(
        self, at_once: int, folder: Path, done: Callable[[Path, str], None], blocks: Blocks | None
    ) -> None:
        # One whole block per slot, so that each host finds the next run of its block.
        self.slots, self.left = at_once * (blocks.variants if blocks else 1), 0
        self._folder, self._done, self._blocks = folder, done, blocks
        self._ending = Ending(at_once)
        self._hosts = HostRows(self._say)
        self._began: float | None = None  # time of the first submit()
        self._lock = threading.RLock()
        self._pending: list[T] = []
        self._over: queue.SimpleQueue[Ended] = queue.SimpleQueue()
        self._screen: Display | None = None  # of the last job, for messages about no job

    def submit(self, job: Job, run: Path, screen: Display, unwanted: Callable[[], bool]) -> None:
        """Put the job into the queue; if an earlier driver started it, that run is followed."""
        self._screen, self._began = screen, self._began or time.monotonic()
        entry = plan_file.portable(job)
        where = str(run.parent.parent.relative_to(self._folder))
        identity = plan_file.identity(entry, where)
        with self._lock:
            self._take_in(self.task_type(job, run, screen, unwanted, entry, identity))

    def look(self, wait_s: float) -> list[Ended]:
        """The jobs that ended since the last look; waits up to wait_s seconds for the first."""
        over = []
        with contextlib.suppress(queue.Empty):
            over.append(self._over.get(timeout=wait_s))
            while True:
                over.append(self._over.get_nowait())
        return over

    def cancel(self, job: Job) -> None:
        """Cut the job short, wherever it is."""
        with self._lock:
            for task in [known for known in self._pending if known.job is job]:
                self._pending.remove(task)
                self._over.put(Ended(job, task.run, ABORTED, "interrupted before it began"))
            for task in [known for known in self._under_way() if known.job is job]:
                task.cancelled = True

    def shown(self) -> Self:
        """Itself: it has a table of the hosts."""
        return self

    def table(self) -> "Table":
        """A row for each host, and a last row about the runs that are left."""
        return table_of(self._rows(), self._ending.words(self.left))

    def end(self) -> None:
        """Cut all jobs short and wait until they have ended."""
        for task in [*self._pending, *self._under_way()]:
            self.cancel(task.job)
        until = time.monotonic() + self.end_s
        while self._is_busy() and time.monotonic() < until:
            self.look(0.2)
        while not self._over.empty():
            self._over.get_nowait()

    def _take_in(self, task: T) -> None:
        """Add a submitted job."""
        self._pending.append(task)

    def _under_way(self) -> list[T]:
        """The tasks that other machines have and that have not ended."""
        raise NotImplementedError

    def _is_busy(self) -> bool:
        """Whether a job is running whose end can be waited for."""
        return bool(self._under_way())

    def _rows(self) -> list[HostRow]:
        raise NotImplementedError

    def _held_by(self, task: T) -> str:
        """The host that has to do the task, as it does the rest of its block; "" if any may."""
        holder = self._blocks.holder(task.job.number) if self._blocks else ""
        return "" if holder in self._hosts.left_out else holder

    def _hold(self, task: T, host: str) -> None:
        """Note that a host has started the task, and does its block."""
        if self._blocks:
            self._blocks.hold(task.job.number, host)

    @property
    def _is_known_dropped(self) -> bool:
        """Whether jobs of an earlier driver will no longer be submitted."""
        return self._began is not None and time.monotonic() - self._began > KNOWN_S

    def _finished(self, task: T, host: str, state: str, why: str, took_s: float | None) -> None:
        """Report a task that ended on that host and whose result is here; took_s: seconds."""
        if state != ABORTED:
            self._hosts.finished(host)
            if took_s is not None:
                self._ending.note(took_s)
        self._over.put(Ended(task.job, task.run, state, f"{why} (on {host})"))

    def _aborted(self, task: T, why: str, host: str = "") -> None:
        """Report a task without a result: its folder says why, without the host's name."""
        if not task.run.exists():
            task.run.mkdir(parents=True)
            write_status(task.run, ABORTED, why, elapsed_s=None)
        reason = f"{why} (on {host})" if host else why
        self._over.put(Ended(task.job, task.run, ABORTED, reason, error=UserError(reason)))

    def _say(self, text: str) -> None:
        if self._screen is not None:
            self._screen.say(text)
