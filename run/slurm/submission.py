# SPDX-License-Identifier: GPL-2.0-or-later
"""The folder of one array of jobs: what each task is to do, and what is known of it.

It is in `.slurm` of the campaign, which driver and nodes share. Who dies leaves all that others
need to go on: `plan.json` is there before sbatch is called, `K.begun` before task K does anything.
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
SUBMITTED = "submitted"  # there once sbatch has answered
NODE, WORKER, ALIVE, REFUSED = "node", "worker", "alive", "refused"  # in K.begun


@dataclass(frozen=True)
class TaskFolder:
    """Task `index` of a submission."""

    submission: Path
    index: int

    @property
    def key(self) -> tuple[str, int]:
        """What Slurm knows it by: the comment, and the index in the array."""
        return self.submission.name, self.index

    @property
    def begun(self) -> Path:
        """Made by the node that does it; a second one does nothing."""
        return self.submission / f"{self.index}.begun"

    @property
    def taken(self) -> Path:
        """Made by the driver when it has taken over what the task left."""
        return self.submission / f"{self.index}.taken"

    @property
    def log(self) -> Path:
        """What the task printed."""
        return self.submission / f"{self.index}.log"

    @property
    def node(self) -> str:
        """The node that began it, empty if none did."""
        return _text(self.begun / NODE)

    def begin(self, node: str) -> bool:
        """Have this process do it on that node; False if another one does it already.

        By a rename, of which NFS may lose the answer: what counts is what is there then.
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
        """Why its node did not do it, empty if it did."""
        return _text(self.begun / REFUSED)

    @property
    def heartbeat(self) -> str:
        """Another text each few seconds as long as the node does it; clocks are not compared."""
        return _text(self.begun / ALIVE)

    @property
    def last_line(self) -> str:
        """The last line that it printed."""
        lines = _text(self.log).splitlines()
        return lines[-1] if lines else ""

    def entry(self) -> dict[str, Any]:
        """Its part of the plan; KeyError if the plan has none, ValueError if it is damaged."""
        tasks = plan(self.submission)["tasks"]
        found: dict[str, Any] = tasks[self.index]
        return found


def make(campaign: Path, planned: Mapping[str, Any]) -> Path:
    """A new submission with this plan, not submitted yet."""
    folder = campaign / FOLDER / secrets.token_hex(6)
    folder.mkdir(parents=True)
    write_json(folder / PLAN, {"format": plan_file.FORMAT, **planned})
    return folder


def plan(submission: Path) -> dict[str, Any]:
    """Its plan; ValueError if it is damaged."""
    found = json.loads((submission / PLAN).read_bytes())
    if not isinstance(found, dict) or found.get("format") != plan_file.FORMAT:
        raise ValueError(f"{submission / PLAN} is no plan of format {plan_file.FORMAT}")
    return found


class Submissions:
    """The submissions of a campaign of which tasks were not taken over."""

    def __init__(self, campaign: Path) -> None:
        self._campaign = campaign
        self._left: dict[Path, set[int]] = {}

    def add(self, folder: Path, tasks: int) -> None:
        """One of so many tasks was submitted."""
        self._left[folder] = set(range(tasks))

    def recover(self, done: Callable[[Path, str], None]) -> dict[str, TaskFolder]:
        """What a driver before us has submitted and not taken over, by the jobs' identities.

        done: called with each run that has a result, and with the node that did it.
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
        """It is over for Slurm; a submission of which nothing is left goes."""
        with contextlib.suppress(OSError):
            task.taken.touch()
        left = self._left.get(task.submission, set())
        left.discard(task.index)
        if not left:
            self._left.pop(task.submission, None)
            remove(task.submission)


def remove(submission: Path) -> None:
    """Remove it: all its tasks are over."""
    shutil.rmtree(submission, ignore_errors=True)


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8", "replace").strip()
    except OSError:
        return ""
