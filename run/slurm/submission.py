# SPDX-License-Identifier: GPL-2.0-or-later
"""The folder of one array of jobs: what each task is to do, and what is known of it.

It is in `.slurm` of the campaign, which driver and nodes share. Who dies leaves all that others
need to go on: `plan.json` is there before sbatch is called, `K.begun` before task K does anything.
"""

import json
import secrets
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from contract.run_record import write_json
from contract.untrusted import json_object
from run.jobs import plan_file

FOLDER = ".slurm"  # in the campaign's folder
PLAN = "plan.json"
SUBMITTED = "submitted"  # there once sbatch has answered
NODE, ALIVE, REFUSED = "node", "alive", "refused"  # in K.begun


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


def existing(campaign: Path) -> Iterator[tuple[TaskFolder, str]]:
    """The tasks of all submissions that are there, each with the identity of its job."""
    for path in sorted((campaign / FOLDER).glob(f"*/{PLAN}")):
        found = json_object(path.read_bytes()) or {}
        for index, one in enumerate(found.get("tasks", ())):
            yield TaskFolder(path.parent, index), str(one.get("identity", ""))


def remove(submission: Path) -> None:
    """Remove it: all its tasks are over."""
    shutil.rmtree(submission, ignore_errors=True)


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8", "replace").strip()
    except OSError:
        return ""
