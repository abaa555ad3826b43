# SPDX-License-Identifier: GPL-2.0-or-later
"""Workers on this machine, a thread for each job."""

import concurrent.futures
import threading
import time
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor
from pathlib import Path

from contract.run_files import ABORTED, COMPLETED
from errors import UserError
from run.jobs import work
from run.jobs.job import Job
from run.jobs.workers import Ended
from run.live import Display


class Local:
    """Does jobs on this machine; slots: at most so many at a time."""

    attempts = 2
    here = True

    def __init__(self, slots: int) -> None:
        self.slots, self.left = slots, 0
        self._pool = ThreadPoolExecutor(slots)
        self._busy: dict[Future[Ended], Job] = {}
        self._cancelled: dict[tuple[str, int], threading.Event] = {}

    def submit(self, job: Job, run: Path, screen: Display, unwanted: Callable[[], bool]) -> None:
        """Start the job in a thread; its folder must exist."""
        cancelled = self._cancelled[job.key] = threading.Event()

        def stopped() -> bool:
            return cancelled.is_set() or unwanted()

        self._busy[self._pool.submit(self._do, job, run, screen, stopped)] = job

    def _do(self, job: Job, run: Path, screen: Display, stopped: Callable[[], bool]) -> Ended:
        began = time.monotonic()
        beside_others = self.slots > 1 and bool(job.place)
        try:
            state, why = work.do(job, run, screen, stopped, beside_others=beside_others)
        except (UserError, OSError) as error:
            return Ended(job, run, ABORTED, str(error), error=error)
        seconds = time.monotonic() - began if state == COMPLETED else None
        return Ended(job, run, state, why, seconds)

    def look(self, wait_s: float) -> list[Ended]:
        """Jobs that ended; waits up to wait_s seconds for one. Raises exceptions that are bugs."""
        done, _ = concurrent.futures.wait(self._busy, wait_s, FIRST_COMPLETED)
        ended = []
        for future in done:
            self._cancelled.pop(self._busy.pop(future).key, None)
            ended.append(future.result())
        return ended

    def cancel(self, job: Job) -> None:
        """Ask the job's thread to end it."""
        if job.key in self._cancelled:
            self._cancelled[job.key].set()

    def shown(self) -> None:
        """Nothing: each run has its own table."""

    def end(self) -> None:
        """Ask all threads to end, and wait until they have ended."""
        for cancelled in self._cancelled.values():
            cancelled.set()
        concurrent.futures.wait(self._busy)
        self._busy.clear()
