# SPDX-License-Identifier: GPL-2.0-or-later
"""The folder of an array of jobs: its plan, and the state of its tasks.

It is in the campaign's `.slurm`, which driver and nodes share. After any process died the others
can continue: `plan.json` exists before sbatch is called, `K.begun` before task K does anything.
"""

import contextlib
import json
import secrets
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from contract.run_files import ABORTED
from contract.run_record import write_json
from contract.untrusted import json_object
from run.jobs import plan_file
from run.run_folders import ended

FOLDER = ".slurm"  # in the campaign's folder
PLAN = "plan.json"
SUBMITTED = "submitted"  # exists once sbatch has answered
NODE, WORKER, ALIVE, REFUSED = "node", "worker", "alive", "refused"  # in K.begun


@dataclass(frozen=True)
class TaskFolder:
    """The files of task `index` of a submission."""

    submission: Path
    index: int

    @property
    def key(self) -> tuple[str, int]:
        """Its key in Slurm: the comment, and the index in the array."""
        return self.submission.name, self.index

    @property
    def begun(self) -> Path:
        """A folder that the node makes which does the task; a second node does nothing."""
        return self.submission / f"{self.index}.begun"

    @property
    def taken(self) -> Path:
        """A file that the driver makes when it has taken over the task's result."""
        return self.submission / f"{self.index}.taken"

    @property
    def log(self) -> Path:
        """The output of the task."""
        return self.submission / f"{self.index}.log"

    @property
    def node(self) -> str:
        """The node that began the task, empty if none did."""
        return _text(self.begun / NODE)

    def begin(self, node: str) -> bool:
        """Claim the task for this process on that node; False if another process has claimed it.

        Uses a rename. NFS may lose its answer: what counts is the folder that exists afterwards.
        """
        token = secrets.token_hex(8)
        aside = self.submission / f".{self.index}-{token}"
        aside.mkdir()
        (aside / NODE).write_text(node)
        (aside / WORKER).write_text(token)
        with contextlib.suppress(OSError):
            aside.rename(self.begun)
        shutil.rmtree(aside, ignore_errors=True)
        return _text(self.begun / WORKER) == token

    @property
    def refused(self) -> str:
        """Why its node did not do the task, empty if it did."""
        return _text(self.begun / REFUSED)

    @property
    def heartbeat(self) -> str:
        """A text that changes every few seconds while the node does the task; no time stamp."""
        return _text(self.begun / ALIVE)

    @property
    def last_line(self) -> str:
        """The last line of the task's output."""
        lines = _text(self.log).splitlines()
        return lines[-1] if lines else ""

    def entry(self) -> dict[str, Any]:
        """Its part of the plan; KeyError if the plan has none, ValueError if it is damaged."""
        tasks = plan(self.submission)["tasks"]
        entry: dict[str, Any] = tasks[self.index]
        return entry


def make(campaign: Path, planned: Mapping[str, Any]) -> Path:
    """Make the folder of a new submission with this plan, not submitted yet."""
    folder = campaign / FOLDER / secrets.token_hex(6)
    folder.mkdir(parents=True)
    write_json(folder / PLAN, {"format": plan_file.FORMAT, **planned})
    return folder


def plan(submission: Path) -> dict[str, Any]:
    """The plan of a submission; ValueError if it is damaged."""
    content = json.loads((submission / PLAN).read_bytes())
    if not isinstance(content, dict) or content.get("format") != plan_file.FORMAT:
        raise ValueError(f"{submission / PLAN} is no plan of format {plan_file.FORMAT}")
    return content


class Submissions:
    """The submissions of a campaign with tasks that were not taken over yet."""

    def __init__(self, campaign: Path) -> None:
        self._campaign = campaign
        self._left: dict[Path, set[int]] = {}

    def add(self, folder: Path, tasks: int) -> None:
        """Add a submission; tasks: its number of tasks."""
        self._left[folder] = set(range(tasks))

    def recover(self, done: Callable[[Path, str], None]) -> dict[str, TaskFolder]:
        """The tasks that an earlier driver submitted and did not take over, by job identity.

        done: called with each run that has a result, and the node that did it.
        """
        known = {}
        for path in sorted((self._campaign / FOLDER).glob(f"*/{PLAN}")):
            for index, entry in enumerate((json_object(path.read_bytes()) or {}).get("tasks", ())):
                task, job = TaskFolder(path.parent, index), entry["job"]
                run = self._campaign / entry["where"] / job["label"] / str(job["number"])
                if task.taken.exists():
                    continue
                if ended(run) not in (None, ABORTED):
                    if task.node:
                        done(run, task.node)
                    continue
                self._left.setdefault(path.parent, set()).add(index)
                known[str(entry["identity"])] = task
        return known

    def take(self, task: TaskFolder) -> None:
        """Mark a task as taken over; removes the submission after its last task."""
        with contextlib.suppress(OSError):
            task.taken.touch()
        left = self._left.get(task.submission, set())
        left.discard(task.index)
        if not left:
            self._left.pop(task.submission, None)
            remove(task.submission)


def remove(submission: Path) -> None:
    """Remove a submission's folder."""
    shutil.rmtree(submission, ignore_errors=True)


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8", "replace").strip()
    except OSError:
        return ""
