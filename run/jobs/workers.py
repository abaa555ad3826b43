# SPDX-License-Identifier: GPL-2.0-or-later
"""The interface between a campaign's runner and the workers that do its runs."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from run.jobs.job import Job
from run.live import Display

if TYPE_CHECKING:
    from run.screen import Shown


@dataclass(frozen=True)
class Ended:
    """An ended job. run: its folder in the campaign, which exists unless the job was lost.

    seconds: its duration, if estimates for other runs here can use it. error: why it could not
    begin.
    """

    job: Job
    run: Path
    state: str
    why: str
    seconds: float | None = None
    error: Exception | None = None


class Workers(Protocol):
    """Does jobs, at most `slots` at a time, here or elsewhere.

    attempts: how often a run is begun if it is cut short each time. here: whether runs take this
    machine's time, and write to their folders in the campaign. left: about how many runs the
    campaign lacks, with the running ones; the runner sets it, for display.
    """

    slots: int
    left: int
    attempts: int
    here: bool

    def submit(self, job: Job, run: Path, screen: Display, unwanted: Callable[[], bool]) -> None:
        """Start a job, whose results will be in the folder run; at most `slots` at a time.

        unwanted: any thread may call it during the run: whether to cut the run short.
        """

    def look(self, wait_s: float) -> list[Ended]:
        """The jobs that ended since the last look; waits up to wait_s seconds for the first."""

    def cancel(self, job: Job) -> None:
        """Cut a job short; a later look reports it as `aborted`."""

    def shown(self) -> "Shown | None":
        """What the screen shows beside the runs; None for nothing."""

    def end(self) -> None:
        """Cut all running jobs short and wait until they have ended; their results are lost.

        Called when the runner ends, for whatever reason.
        """
