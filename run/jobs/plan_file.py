# SPDX-License-Identifier: GPL-2.0-or-later
"""The plan of jobs that `python3 -m run.one` reads: JSON, in the results folder."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from contract.run_record import write_json
from errors import Exit, UserError
from run.jobs import job as jobs
from run.jobs.job import Job
from setup import cache

FORMAT = 3
LARGEST = 64 << 20  # bytes, of a plan; no more are read


def write(path: Path, planned: Iterable[Job]) -> None:
    """Write a plan of these jobs, by a rename."""
    write_json(path, {"format": FORMAT, "jobs": [jobs.to_json(job) for job in planned]})


def portable(job: Job) -> dict[str, Any]:
    """A job as JSON values, with files named by their place in any host's cache."""
    entry = jobs.to_json(job)
    for file in entry["files"].values():
        file["name"] = place_of(file["name"], file["sha256"])
    return entry


def identity(entry: Mapping[str, Any], where: str) -> str:
    """The identity of a job of the campaign in the folder where; ignores the suite's commit.

    entry: the job in its plan. Two jobs with the same identity would be the same run.
    """
    facts = {name: value for name, value in entry["facts"].items() if name != "suite"}
    return cache.key(where, json.dumps({**entry, "facts": facts}, sort_keys=True))


def place_of(name: str, digest: str) -> str:
    """A file's place in a host's cache: as in our cache, or by its digest if it is elsewhere."""
    return f"elsewhere/{digest}" if name.startswith("/") else name


def read(path: Path, label: str, number: int) -> Job:
    """A job of a plan; UserError if the plan is invalid or lacks the job, or if a file differs."""
    try:
        with open(path, "rb") as file:
            plan = json.loads(file.read(LARGEST))
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}", status=Exit.USAGE) from None
    except ValueError:
        raise UserError(f"{path} is no plan of jobs", status=Exit.USAGE) from None
    if not isinstance(plan, dict) or plan.get("format") != FORMAT:
        raise UserError(f"{path} is no plan of jobs of format {FORMAT}", status=Exit.USAGE)
    try:
        entries = [
            entry for entry in plan["jobs"] if (entry["label"], entry["number"]) == (label, number)
        ]
        if entries:
            return jobs.from_json(entries[0])
        known = ", ".join(f"{entry['label']} {entry['number']}" for entry in plan["jobs"][:5])
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise UserError(f"{path}: a job is damaged: {error!r}", status=Exit.USAGE) from None
    raise UserError(
        f"{path} has no run {number} of {label}",
        hint=f"it has {known}" if known else "it has none",
        status=Exit.USAGE,
    )
