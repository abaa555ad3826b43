# SPDX-License-Identifier: GPL-2.0-or-later
"""Simulates Slurm and its nodes: tasks of given lengths, on a clock that only sleeps advance."""

import heapq
import random
import time
from collections import Counter, deque
from collections.abc import Sequence
from pathlib import Path

from contract.run_record import write_status
from run.slurm import submission
from run.slurm.controller import Controller, QueuedTask
from run.slurm.submission import TaskFolder

MIN_JOB_AGE_S = 300.0  # Slurm's default: how long squeue shows an ended task


class SimulatedClock:
    """Replaces `time` in the driver: seconds pass only when it sleeps."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        """Seconds since the beginning."""
        return self.now

    def sleep(self, seconds: float) -> None:
        """Let these seconds pass."""
        self.now += seconds


class SimulatedQueue(Controller):
    """Nodes with `slots` slots in all, where runs take shortest_s to longest_s seconds.

    spent: CPU seconds of the simulation itself, which do not count as the driver's.
    """

    def __init__(
        self, folder: Path, clock: SimulatedClock, slots: int, shortest_s: float, longest_s: float
    ) -> None:
        self.calls: Counter[str] = Counter()
        self.spent = 0.0
        self.submitted_last = 0.0
        self._folder, self._clock, self._slots = folder, clock, slots
        self._length = (shortest_s, longest_s)
        self._random = random.Random(1)
        self._waiting: deque[tuple[str, int]] = deque()
        self._running: list[tuple[float, tuple[str, int]]] = []
        self._known: dict[tuple[str, int], QueuedTask] = {}
        self._over: deque[tuple[float, tuple[str, int]]] = deque()
        self._number = 0

    def max_array(self) -> int:
        """Slurm's default limit of tasks in an array, 1,001."""
        self.calls["scontrol"] += 1
        return 1001

    def submit(self, name: str, comment: str, tasks: int, words: Sequence[str]) -> None:
        """Queue an array of tasks."""
        self.calls["sbatch"] += 1
        began = time.process_time()
        self._number += 1
        self.submitted_last = self._clock.now
        for index in range(tasks):
            key = comment, index
            self._waiting.append(key)
            self._known[key] = QueuedTask(f"{self._number}_{index}", "PENDING", "", "Priority")
        self._pass()
        self.spent += time.process_time() - began

    def tasks(self, name: str) -> dict[tuple[str, int], QueuedTask]:
        """The tasks that squeue shows, by comment and index."""
        self.calls["squeue"] += 1
        began = time.process_time()
        self._pass()
        self.spent += time.process_time() - began
        return dict(self._known)

    def cancel(self, job_ids: Sequence[str]) -> None:
        """Not expected: this benchmark cancels nothing."""
        raise AssertionError(job_ids)

    def _pass(self) -> None:
        """Let everything happen that is due by now."""
        now = self._clock.now
        while self._running and self._running[0][0] <= now:
            at, key = heapq.heappop(self._running)
            self._finish(key)
            self._over.append((at, key))
            self._begin(at)
        while self._over and self._over[0][0] <= now - MIN_JOB_AGE_S:
            self._known.pop(self._over.popleft()[1])
        self._begin(now)

    def _begin(self, at: float) -> None:
        while self._waiting and len(self._running) < self._slots:
            key = self._waiting.popleft()
            heapq.heappush(self._running, (at + self._random.uniform(*self._length), key))
            folder = self._task(key)
            folder.begun.mkdir()
            (folder.begun / submission.NODE).write_text(f"n{hash(key) % 8}")
            self._known[key] = QueuedTask(self._known[key].job_id, "RUNNING", "n", "None")

    def _finish(self, key: tuple[str, int]) -> None:
        entry = self._task(key).entry()
        run = self._folder / entry["where"] / entry["job"]["label"] / str(entry["job"]["number"])
        run.mkdir()
        write_status(run, "completed", "as simulated", elapsed_s=1.0)
        self._known[key] = QueuedTask(self._known[key].job_id, "COMPLETED", "n", "None")

    def _task(self, key: tuple[str, int]) -> TaskFolder:
        return TaskFolder(self._folder / submission.FOLDER / key[0], key[1])
