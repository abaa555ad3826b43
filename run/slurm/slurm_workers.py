# SPDX-License-Identifier: GPL-2.0-or-later
"""Workers in Slurm's queue. The driver polls folders and squeue, in one thread.

A run is done when its folder exists. It is lost when squeue answers without listing it, its node's
heartbeat has stopped, and its folder has not appeared for SETTLE_S.
"""

import contextlib
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from contract.run_files import ABORTED
from contract.run_record import write_status
from errors import UserError
from run.jobs import progress, run_copies
from run.jobs.elsewhere import Blocks, Elsewhere
from run.jobs.hosts_table import HostRow
from run.jobs.job import Job
from run.jobs.programs import NoAnswer
from run.jobs.workers import Ended
from run.run_folders import ended, why_of
from run.slurm import submission
from run.slurm.arrays import Arrays
from run.slurm.controller import OVER, Controller, QueuedTask, QueueFull
from run.slurm.submission import Submissions, TaskFolder
from run.slurm.tasks import BLAMELESS, UNTOLD, SlurmTask
from vm.results_memory import recover

LOOK_S = 5.0  # between two calls of squeue
SUBMIT_S = 5.0  # for which runs are collected for an array
# Delay until a shared folder shows what a node has written: NFS may cache for 60 s.
SETTLE_S = 90.0
FULL_S = 60.0  # until sbatch is tried again after it accepted no more jobs
# Normal reasons for waiting; and the reason if a node does no more runs.
USUAL = frozenset(("None", "Resources", "Priority", "JobArrayTaskLimit", "Cleaning", "BeginTime"))
NODE_AWAY = "ReqNodeNotAvail"


class SlurmWorkers(Elsewhere[SlurmTask]):
    """Does jobs in Slurm's queue.

    name: of all the campaign's jobs there. arrays: makes its submissions.
    """

    end_s = 90.0  # within which Slurm has to end cancelled jobs
    task_type = SlurmTask

    def __init__(
        self,
        queue: Controller,
        slots: int,
        name: str,
        folder: Path,
        arrays: Arrays,
        done: Callable[[Path, str], None],
        blocks: Blocks | None = None,
    ) -> None:
        super().__init__(slots, folder, done, blocks)
        self._queue, self._name, self._arrays = queue, name, arrays
        self._max_array = self._most = queue.max_array()
        self._tasks: list[SlurmTask] = []
        self._submissions = Submissions(folder)
        self._known = self._submissions.recover(done)
        self._next_ask = self._next_submit = 0.0
        self._away = ""
        self._told: set[str] = set()

    def look(self, wait_s: float) -> list[Ended]:
        """The jobs that ended since the last look; UserError if Slurm refuses all jobs."""
        for task in list(self._tasks):
            if (state := ended(task.run)) not in (None, ABORTED):
                self._taken_over(task, str(state))
        now = time.monotonic()
        if now >= self._next_ask:
            self._ask()
            self._next_ask = time.monotonic() + max(LOOK_S, time.monotonic() - now)
        if self._pending and not self._away and now >= self._next_submit:
            self._submit_pending()
        if self._over.empty():
            time.sleep(wait_s)
        return super().look(0)

    def cancel(self, job: Job) -> None:
        """Cut the job short, in the queue or on its node."""
        if any(task.job is job and not task.cancelled for task in self._tasks):
            self._next_ask = 0.0
        super().cancel(job)

    def end(self) -> None:
        """Cancel all jobs and wait until they have ended."""
        super().end()
        if self._tasks:
            self._say(f"Slurm has not ended all: scancel --name={self._name} does")

    def close(self) -> None:
        """End all jobs, and cancel those of an earlier driver that are still in the queue."""
        self.end()
        if self._known:
            self._drop_known()

    def _take_in(self, task: SlurmTask) -> None:
        """Put the task into the next array; if it is in Slurm's queue already, follow it there."""
        if (folder := self._known.pop(task.identity, None)) is not None:
            task.folder, task.beat_at = folder, time.monotonic()
            self._tasks.append(task)
            task.screen.say(f"{task.run}: Slurm has it already")
            return
        if not self._pending:
            self._next_submit = max(self._next_submit, time.monotonic() + SUBMIT_S)
        super()._take_in(task)

    def _under_way(self) -> list[SlurmTask]:
        return self._tasks

    def _rows(self) -> list[HostRow]:
        """A row for each node, and a row for the waiting runs and their reasons."""
        runs: dict[str, list[tuple[str, str]]] = {}
        reasons = {self._away} if self._away else set()
        for task in self._tasks:
            runs.setdefault(task.node, []).append((task.job.title, task.progress.words))
            if not task.node and task.queued:
                reasons.add(task.queued.reason)
        waiting = len(self._pending) + len(runs.pop("", ()))
        queue = HostRow("(queue)", note=", ".join(sorted(reasons - {"None"})), waiting=waiting)
        return [*self._hosts.doing(runs), queue]

    def _ask(self) -> None:
        """Poll the queue: handle ended tasks, cancel unwanted ones."""
        try:
            queued = self._queue.tasks(self._name)
            for task in list(self._tasks):
                self._check(task, queued)
            unwanted = [
                candidate
                for candidate in self._tasks
                if candidate.queued and not candidate.cancel_sent and candidate.is_unwanted()
            ]
            for task in unwanted:
                task.cancelled = task.cancel_sent = True
            if ids := [candidate.queued.job_id for candidate in unwanted if candidate.queued]:
                self._queue.cancel(ids)
            if self._known and self._is_known_dropped:
                self._drop_known()
        except NoAnswer as error:
            if not self._away:
                self._say(f"Slurm's controller does not answer: {error}; what runs goes on")
            self._away = str(error)
            return
        if self._away:
            self._say("Slurm's controller answers again")
        self._away = ""

    def _check(self, task: SlurmTask, found: Mapping[tuple[str, int], QueuedTask]) -> None:
        """Update a task from the queue and from its node's files."""
        assert task.folder is not None
        now = time.monotonic()
        task.queued = found.get(task.folder.key)
        beat = task.folder.heartbeat
        if beat != task.heartbeat:
            task.heartbeat, task.beat_at = beat, now
        if task.node:
            if task.began_at is None:
                self._hold(task, task.node)
                task.began_at = now
            task.progress = progress.of_run(task.partial)
        state = task.queued.state if task.queued else ""
        if task.queued is not None and state not in OVER:
            task.over_at = None
            if state == "PENDING" and task.queued.reason not in USUAL:
                self._say_once(f"runs wait in Slurm: {task.queued.reason}")
                if NODE_AWAY in task.queued.reason and self._held_by(task):
                    self._queue.cancel([task.queued.job_id])
                    self._hold(task, "")
                    self._again(task)
            return
        submitted = (task.folder.submission / submission.SUBMITTED).exists()
        if task.queued is None and not task.node and not submitted:
            self._again(task)  # sbatch did not submit it
            return
        task.over_at = task.over_at or now
        # If the folder shows the end already, do not wait.
        shown = task.node and (task.folder.refused or ended(task.partial) is not None)
        never_begun = state == "CANCELLED" and not (task.queued and task.queued.node)
        if shown or never_begun or now >= max(task.over_at, task.beat_at) + SETTLE_S:
            self._gone(task, state)

    def _again(self, task: SlurmTask) -> None:
        """Put a task back to be submitted again; this does not count as an attempt."""
        self._take(task)
        task.put_back()
        if task.cancelled:
            self._over.put(Ended(task.job, task.run, ABORTED, "interrupted before it began"))
        else:
            self._pending.append(task)

    def _taken_over(self, task: SlurmTask, state: str) -> None:
        """Report a task whose run has arrived."""
        node = task.node
        self._take(task)
        self._done(task.run, node)
        if others := sorted(
            copy.name for copy in task.run.parent.glob(f"{task.run.name}.differs-*")
        ):
            task.screen.say(
                f"WARNING: {task.run}: other copies of it differ: {', '.join(others)}. Compare "
                f"them before you trust {node}"
            )
        took_s = None if task.began_at is None else time.monotonic() - task.began_at
        self._finished(task, node, state, why_of(task.run), took_s)

    def _gone(self, task: SlurmTask, state: str) -> None:
        """Handle a task that ended without a result: its folder says why."""
        assert task.folder is not None
        # Opening a folder makes NFS show what others have put into it.
        for folder in (task.run.parent, task.folder.submission):
            with contextlib.suppress(OSError):
                list(folder.iterdir())
        node, refused = task.node, task.folder.refused
        if ended(task.run) not in (None, ABORTED) or (node and task.began_at is None):
            return  # the next look sees it
        if refused and not task.cancelled:
            self._hosts.leave_out(node, refused)
            self._again(task)
            return
        if node and ended(task.partial) not in (None, ABORTED):
            # Its worker ended, or was killed, between the run's last file and the rename.
            with contextlib.suppress(FileNotFoundError):
                run_copies.settle(task.partial, task.run)
            return
        why = task.why_cut(state)
        if node and task.partial.is_dir():
            made = task.partial
            with contextlib.suppress(UserError):
                recover(made)
            # If Slurm ended the worker, Slurm's reason is better than the worker's.
            if ended(made) is not None and state in UNTOLD:
                why = why_of(made)
            else:
                write_status(made, ABORTED, why, elapsed_s=None)
            made.rename(task.run)
        self._take(task)
        if node and not task.cancelled and state not in BLAMELESS:
            self._hosts.cut(node, why)
        self._aborted(task, why, node)

    def _take(self, task: SlurmTask) -> None:
        """Forget a task that Slurm has ended."""
        assert task.folder is not None
        if task in self._tasks:
            self._tasks.remove(task)
        self._submissions.take(task.folder)

    def _drop_known(self) -> None:
        """Cancel an earlier driver's jobs that were not submitted again."""
        with contextlib.suppress(NoAnswer):
            queued = self._queue.tasks(self._name)
            keys = [known.key for known in self._known.values()]
            if ids := [queued[key].job_id for key in keys if key in queued]:
                self._queue.cancel(ids)
            for folder in self._known.values():
                self._submissions.take(folder)
            self._known = {}

    def _submit_pending(self) -> None:
        """Submit the waiting tasks as arrays, as long as the site permits."""
        while True:
            tasks, node = self._next_array()
            if not tasks:
                return
            folder = self._arrays.make(tasks)
            words = self._arrays.words(folder, tasks, self._hosts.left_out, node)
            try:
                self._queue.submit(self._name, folder.name, len(tasks), words)
            except NoAnswer as error:
                # Once it answers, the comment shows whether it accepted them.
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

    def _next_array(self) -> tuple[list[SlurmTask], str]:
        """The tasks to submit next, and the node that has to do them ("": any)."""
        if self._blocks is None:
            return self._pending[: self._most], ""
        for node in map(self._held_by, self._pending):
            if node:
                tasks = [task for task in self._pending if self._held_by(task) == node]
                return tasks[: self._most], node
        # Submit a block only when the previous block's node is known.
        waits = any(not task.node and not self._held_by(task) for task in self._tasks)
        return ([] if waits else self._pending[:1]), ""

    def _follow(self, folder: Path, tasks: Sequence[SlurmTask]) -> None:
        now = time.monotonic()
        for index, task in enumerate(tasks):
            task.folder, task.beat_at = TaskFolder(folder, index), now
            self._pending.remove(task)
            self._tasks.append(task)
        self._submissions.add(folder, len(tasks))

    def _say_once(self, text: str) -> None:
        if text not in self._told:
            self._told.add(text)
            self._say(text)
