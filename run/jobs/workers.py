# SPDX-License-Identifier: GPL-2.0-or-later
"""Who does a campaign's runs: all that its runner knows of them."""

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
    """A job that is over. run: its folder in the campaign, which is there unless it was lost.

    seconds: that it took, if that says how long others take here. error: why it could not begin.
    """

    job: Job
    run: Path
    state: str
    why: str
    seconds: float | None = None
    error: Exception | None = None


class Workers(Protocol):
    """Does jobs, so many at a time (slots), here or elsewhere.

    attempts: how often a run is begun that was cut short each time. here: its runs take this
    machine's time, and their folders grow in the campaign. left: about how many runs the campaign
    lacks, those included that go on; the runner sets it, for what is shown.
    """

    slots: int
    left: int
    attempts: int
    here: bool

    def submit(self, job: Job, run: Path, screen: Display, unwanted: Callable[[], bool]) -> None:
        """Begin a job, whose results will be in the folder run; at most `slots` at a time.

        unwanted: is asked while it goes on, by any thread: whether it is to be cut short.
        """

    def look(self, wait_s: float) -> list[Ended]:
        """The jobs that ended since the last look; waits so long for one, if there is none."""

    def cancel(self, job: Job) -> None:
        """Have a job cut short; it ends as `aborted`, in a later look."""

    def shown(self) -> "Shown | None":
        """What is on the screen beside the runs."""

    def end(self) -> None:
        """Have all jobs cut short that go on, and wait until they are; what they came to is lost.

        Called when the runner ends, whatever for.
        """
