# SPDX-License-Identifier: GPL-2.0-or-later
"""The driver's state of each job in Slurm's queue, and the reason if it has no result."""

from dataclasses import dataclass
from pathlib import Path

from run.jobs import run_copies
from run.jobs.elsewhere import Task
from run.jobs.progress import Progress
from run.slurm.controller import QueuedTask
from run.slurm.submission import TaskFolder

WHY = {
    "BOOT_FAIL": "its node did not boot",
    "CANCELLED": "it was cancelled in Slurm (scancel)",
    "DEADLINE": "Slurm's deadline ended it",
    "NODE_FAIL": "its node failed",
    "OUT_OF_MEMORY": "it needed more memory than Slurm gave it: --on slurm:mem=SIZE",
    "PREEMPTED": "another job took its place (preemption)",
    "TIMEOUT": "it reached Slurm's time limit: --on slurm:time=MINUTES",
    "": "neither Slurm's queue nor a heartbeat knows it",
}
NO_WORD = "it printed nothing: is its folder on a file system that all nodes share, at this path?"
# States that do not explain why a worker did not finish its run.
UNTOLD = ("FAILED", "COMPLETED", "")
# States that are not the node's fault.
BLAMELESS = ("CANCELLED", "PREEMPTED", "TIMEOUT", "DEADLINE")


@dataclass
class SlurmTask(Task):
    """A submitted job. folder: its task in a submission, once it is in one.

    over_at: when squeue first no longer had it; beat_at: when its heartbeat last changed; these and
    began_at are seconds of the driver's monotonic clock.
    """

    folder: TaskFolder | None = None
    queued: QueuedTask | None = None
    cancel_sent: bool = False
    heartbeat: str = ""
    beat_at: float = 0.0
    over_at: float | None = None
    began_at: float | None = None

    @property
    def node(self) -> str:
        """The node that began the task, empty if none did."""
        return self.folder.node if self.folder else ""

    @property
    def partial(self) -> Path:
        """The folder of its run in progress; the task has to be in a submission."""
        assert self.folder is not None
        name = f"{self.folder.submission.name}-{self.folder.index}"
        return self.run.with_name(run_copies.partial_name(self.job.number, self.node, name))

    def put_back(self) -> None:
        """Reset it, so that it can be put into another submission."""
        self.folder, self.queued, self.over_at, self.began_at = None, None, None, None
        self.cancel_sent, self.progress = False, Progress()

    def why_cut(self, state: str) -> str:
        """Why it ended without a result, in one line; state: its last state in squeue."""
        assert self.folder is not None
        if not self.node and state in ("FAILED", "COMPLETED"):
            return f"its worker ended before it began: {self.folder.last_line or NO_WORD}"
        if state in UNTOLD:
            silent = "it printed nothing" if state else WHY[""]
            return f"its worker was cut short: {self.folder.last_line or silent}"
        return WHY.get(state, f"Slurm says {state}")
