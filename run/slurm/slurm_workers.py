# SPDX-License-Identifier: GPL-2.0-or-later
"""Slurm as who does jobs. The driver looks at folders and at squeue, in one thread.

A run is done when its folder is there. It is lost when squeue answers and does not have it, its
node's heartbeat has stopped, and its folder has not come for SETTLE_S.
"""

import contextlib
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from contract.run_files import ABORTED
from contract.run_record import write_status
from errors import UserError
from run.hosts import progress
from run.hosts.hosts_table import Ending, table_of
from run.hosts.one_host import identity
from run.jobs import plan_file, run_copies
from run.jobs.job import Job
from run.jobs.workers import Ended
from run.live import Display
from run.run_folders import ended, why_of
from run.slurm import submission
from run.slurm.arrays import Arrays
from run.slurm.controller import OVER, ControllerAway, Queue, QueuedTask, QueueFull
from run.slurm.nodes import Nodes
from run.slurm.submission import TaskFolder
from run.slurm.tasks import BLAMELESS, UNTOLD, SlurmTask
from vm.results_memory import recover

if TYPE_CHECKING:
    from rich.table import Table

LOOK_S = 5.0  # between two calls of squeue
SUBMIT_S = 5.0  # that runs are gathered for one array
SETTLE_S = 60.0  # in which a shared folder shows what a node has written
FULL_S = 60.0  # until sbatch is tried again after it took no more
KNOWN_S = 30.0  # in which a campaign that is gone on with asks for what the queue has of it
END_S = 90.0  # in which Slurm has to end what is cancelled
# Reasons for waiting that pass by themselves.
USUAL = frozenset(("None", "Resources", "Priority", "JobArrayTaskLimit", "Cleaning", "BeginTime"))


class SlurmWorkers:
    """Jobs in Slurm's queue, at most `slots` at a time.

    name: of all the campaign's jobs there. folder: of the campaign. arrays: make its submissions.
    done: is told which node did which run.
    """

    attempts = 3
    here = False

    def __init__(
        self,
        queue: Queue,
        slots: int,
        name: str,
        folder: Path,
        arrays: Arrays,
        done: Callable[[Path, str], None],
    ) -> None:
        self.slots, self.left = slots, 0
        self._queue, self._name, self._folder = queue, name, folder
        self._arrays, self._done = arrays, done
        self._max_array = self._most = queue.max_array()
        self._pending: list[SlurmTask] = []
        self._tasks: list[SlurmTask] = []
        self._over: list[Ended] = []
        self._open: dict[Path, set[int]] = {}  # tasks of a submission that were not taken over
        self._known = self._recovered()
        self._began = time.monotonic()
        self._next_ask = self._next_submit = 0.0
        self._away = ""
        self._screen: Display | None = None  # of the last job, for what is about no job
        self._told: set[str] = set()
        self._nodes = Nodes(self._say)
        self._ending = Ending(self.slots)

    def submit(self, job: Job, run: Path, screen: Display, unwanted: Callable[[], bool]) -> None:
        """Put it into the row for the next array; if the queue has it from before, follow that."""
        self._screen = screen
        entry = plan_file.portable(job)
        where = str(run.parent.parent.relative_to(self._folder))
        task = SlurmTask(job, run, screen, unwanted, entry, identity(entry, where))
        if (folder := self._known.pop(task.identity, None)) is not None:
            task.folder, task.beat_at = folder, time.monotonic()
            self._tasks.append(task)
            screen.say(f"{run}: Slurm has it already")
            return
        if not self._pending:
            self._next_submit = max(self._next_submit, time.monotonic() + SUBMIT_S)
        self._pending.append(task)

    def look(self, wait_s: float) -> list[Ended]:
        """The jobs that ended; UserError if Slurm refuses all."""
        self._look_at_folders()
        now = time.monotonic()
        if now >= self._next_ask:
            self._ask()
            self._next_ask = time.monotonic() + max(LOOK_S, time.monotonic() - now)
        if self._pending and not self._away and now >= self._next_submit:
            self._submit_pending()
        if not self._over:
            time.sleep(wait_s)
        over, self._over = self._over, []
        return over

    def cancel(self, job: Job) -> None:
        """Have it cut short, in the queue or on its node."""
        for task in [one for one in self._pending if one.job is job]:
            self._pending.remove(task)
            self._over.append(Ended(job, task.run, ABORTED, "interrupted before it began"))
        for task in self._tasks:
            if task.job is job and not task.cancelled:
                task.cancelled, self._next_ask = True, 0.0

    def shown(self) -> "SlurmWorkers":
        """The nodes."""
        return self

    def table(self) -> "Table":
        """A row for each node, one for what waits, and one of how much is left."""
        rows = self._nodes.rows(self._tasks, len(self._pending), self._away)
        return table_of(rows, self._ending.words(self.left))

    def close(self) -> None:
        """End all, and leave nothing in the queue that would begin."""
        self.end()
        self._drop_known()

    def end(self) -> None:
        """Cancel all jobs, and wait until they are over."""
        for task in [*self._pending, *self._tasks]:
            self.cancel(task.job)
        until = time.monotonic() + END_S
        while self._tasks and time.monotonic() < until:
            self.look(0.2)
        if self._tasks:
            self._say(f"Slurm has not ended all: scancel --name={self._name} does")
        self._over.clear()

    def _recovered(self) -> dict[str, TaskFolder]:
        """What a driver before us has submitted and not taken over, by the jobs' identities."""
        known = {}
        for folder, found in submission.existing(self._folder):
            if folder.taken.exists():
                continue
            entry = folder.entry()
            job = entry["job"]
            run = self._folder / entry["where"] / job["label"] / str(job["number"])
            if ended(run) not in (None, ABORTED):
                if folder.node:
                    self._done(run, folder.node)
                continue
            self._open.setdefault(folder.submission, set()).add(folder.index)
            known[found] = folder
        return known

    def _look_at_folders(self) -> None:
        for task in list(self._tasks):
            state = ended(task.run)
            if state not in (None, ABORTED):
                self._finished(task, str(state))

    def _ask(self) -> None:
        """Look at the queue: which tasks are over, which are to be cancelled."""
        try:
            found = self._queue.tasks(self._name)
            for task in list(self._tasks):
                self._check(task, found)
            ids = [one.job_id for one in map(self._to_cancel, self._tasks) if one]
            if ids:
                self._queue.cancel(ids)
            if self._known and time.monotonic() - self._began > KNOWN_S:
                self._drop_known()
        except ControllerAway as error:
            if not self._away:
                self._say(f"Slurm's controller does not answer: {error}; what runs goes on")
            self._away = str(error)
            return
        if self._away:
            self._say("Slurm's controller answers again")
        self._away = ""

    def _to_cancel(self, task: SlurmTask) -> QueuedTask | None:
        """The task as the queue has it, if it is to be cancelled there and was not yet."""
        if task.cancel_sent or task.queued is None or not (task.cancelled or task.unwanted()):
            return None
        task.cancelled = task.cancel_sent = True
        return task.queued

    def _check(self, task: SlurmTask, found: Mapping[tuple[str, int], QueuedTask]) -> None:
        """What the queue says of a task, and what its node."""
        assert task.folder is not None
        now = time.monotonic()
        task.queued = found.get(task.folder.key)
        beat = task.folder.heartbeat
        if beat != task.heartbeat:
            task.heartbeat, task.beat_at = beat, now
        if task.node:
            task.began_at = task.began_at or now
            task.progress = progress.of_run(task.partial)
        state = task.queued.state if task.queued else ""
        if task.queued is not None and state not in OVER:
            task.over_at = None
            if state == "PENDING" and task.queued.reason not in USUAL:
                self._say_once(f"Slurm has runs wait: {task.queued.reason}")
            return
        submitted = (task.folder.submission / submission.SUBMITTED).exists()
        if task.queued is None and not task.node and not submitted:
            self._again(task)  # sbatch has not done it
            return
        task.over_at = task.over_at or now
        # What the folder shows already needs no wait.
        shown = task.node and (task.folder.refused or ended(task.partial) is not None)
        never_begun = state == "CANCELLED" and not task.node
        if shown or never_begun or now >= max(task.over_at, task.beat_at) + SETTLE_S:
            self._gone(task, state)

    def _again(self, task: SlurmTask) -> None:
        """Back into the row; no attempt of it is lost."""
        self._take(task)
        task.put_back()
        if task.cancelled:
            self._over.append(Ended(task.job, task.run, ABORTED, "interrupted before it began"))
        else:
            self._pending.append(task)

    def _finished(self, task: SlurmTask, state: str) -> None:
        """Its run is there."""
        node = task.node
        self._take(task)
        self._nodes.finished(node)
        if task.began_at is not None:
            self._ending.note(time.monotonic() - task.began_at)
        self._done(task.run, node)
        if others := sorted(one.name for one in task.run.parent.glob(f"{task.run.name}.differs-*")):
            task.screen.say(
                f"WARNING: {task.run}: other copies of it differ: {', '.join(others)}. Compare "
                f"them before you trust {node}"
            )
        self._over.append(Ended(task.job, task.run, state, f"{why_of(task.run)} (on {node})"))

    def _gone(self, task: SlurmTask, state: str) -> None:
        """It is over and left no result: its folder says why."""
        assert task.folder is not None
        node, refused = task.node, task.folder.refused
        if refused and not task.cancelled:
            self._nodes.leave_out(node, refused)
            self._again(task)
            return
        if node and ended(task.partial) not in (None, ABORTED):
            # Its worker ended, or was ended, between the last file of the run and the rename.
            with contextlib.suppress(FileNotFoundError):
                run_copies.settle(task.partial, task.run)
            return
        why = task.why_cut(state)
        if node and task.partial.is_dir():
            made = task.partial
            with contextlib.suppress(UserError):
                recover(made)
            # A worker that was asked to end knows less of why than Slurm.
            if ended(made) is not None and state in UNTOLD:
                why = why_of(made)
            else:
                write_status(made, ABORTED, why, elapsed_s=None)
            made.rename(task.run)
        else:
            task.run.mkdir(parents=True)
            write_status(task.run, ABORTED, why, elapsed_s=None)
        self._take(task)
        told = f"{why} (on {node})" if node else why
        if node and not task.cancelled and state not in BLAMELESS:
            self._nodes.cut(node, why)
        self._over.append(Ended(task.job, task.run, ABORTED, told, error=UserError(told)))

    def _take(self, task: SlurmTask) -> None:
        """It is over for Slurm; a submission of which nothing is left goes."""
        assert task.folder is not None
        if task in self._tasks:
            self._tasks.remove(task)
        self._close_task(task.folder)

    def _close_task(self, folder: TaskFolder) -> None:
        with contextlib.suppress(OSError):
            folder.taken.touch()
        left = self._open.get(folder.submission, set())
        left.discard(folder.index)
        if not left:
            self._open.pop(folder.submission, None)
            submission.remove(folder.submission)

    def _drop_known(self) -> None:
        """Cancel what nobody has asked for again."""
        if not self._known:
            return
        dropped, self._known = self._known, {}
        try:
            found = self._queue.tasks(self._name)
            keys = [one.key for one in dropped.values()]
            ids = [found[key].job_id for key in keys if key in found]
            if ids:
                self._queue.cancel(ids)
        except ControllerAway:
            self._known = dropped
            return
        for folder in dropped.values():
            self._close_task(folder)

    def _submit_pending(self) -> None:
        """The row as arrays, as long as the site permits."""
        while self._pending:
            tasks = self._pending[: self._most]
            folder = self._arrays.make(tasks)
            words = self._arrays.words(folder, tasks, self._nodes.excluded)
            try:
                self._queue.submit(self._name, folder.name, len(tasks), words)
            except ControllerAway as error:
                # Whether it has taken them is seen when it answers: they are found by the comment.
                self._away = self._away or str(error)
                self._say(f"Slurm's controller does not answer: {error}; what runs goes on")
                self._follow(folder, tasks)
                return
            except QueueFull as error:
                submission.remove(folder)
                self._most = max(1, len(tasks) // 2)
                self._next_submit = time.monotonic() + FULL_S
                self._say_once(f"Slurm takes no more runs now: {error}")
                return
            except UserError:
                submission.remove(folder)
                raise
            (folder / submission.SUBMITTED).touch()
            self._follow(folder, tasks)
            self._most = min(self._max_array, 2 * self._most)

    def _follow(self, folder: Path, tasks: Sequence[SlurmTask]) -> None:
        now = time.monotonic()
        for index, task in enumerate(tasks):
            task.folder, task.beat_at = TaskFolder(folder, index), now
            self._pending.remove(task)
            self._tasks.append(task)
        self._open[folder] = set(range(len(tasks)))

    def _say_once(self, text: str) -> None:
        if text not in self._told:
            self._told.add(text)
            self._say(text)

    def _say(self, text: str) -> None:
        if self._screen is not None:
            self._screen.say(text)
