# SPDX-License-Identifier: GPL-2.0-or-later
"""The plan of jobs that `python3 -m run.one` reads: JSON, in the folder where results go."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from contract.run_record import write_json
from errors import Exit, UserError
from run.jobs import job as jobs
from run.jobs.job import Job
from setup import cache

FORMAT = 1
LARGEST = 64 << 20  # bytes that are read of a plan


def write(path: Path, planned: Iterable[Job]) -> None:
    """Write it, by a rename."""
    write_json(path, {"format": FORMAT, "jobs": [jobs.to_json(one) for one in planned]})


def portable(job: Job) -> dict[str, Any]:
    """One job as JSON values in which each file has its place in any host's cache."""
    entry = jobs.to_json(job)
    for one in entry["files"].values():
        one["name"] = place_of(one["name"], one["sha256"])
    return entry


def identity(entry: Mapping[str, Any], where: str) -> str:
    """What stands for a job of the campaign in the folder where; the suite's commit does not count.

    entry: of its plan. Two jobs that have the same identity would be the same run.
    """
    facts = {name: value for name, value in entry["facts"].items() if name != "suite"}
    return cache.key(where, json.dumps({**entry, "facts": facts}, sort_keys=True))


def place_of(name: str, digest: str) -> str:
    """Where a file is in a host's cache: at its place in ours, or by its digest."""
    return f"elsewhere/{digest}" if name.startswith("/") else name


def read(path: Path, label: str, number: int) -> Job:
    """One job of a plan; UserError if it is no plan, lacks the job, or a file is not as it says."""
    try:
        with open(path, "rb") as file:
            found = json.loads(file.read(LARGEST))
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}", status=Exit.USAGE) from None
    except ValueError:
        raise UserError(f"{path} is no plan of jobs", status=Exit.USAGE) from None
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        raise UserError(f"{path} is no plan of jobs of format {FORMAT}", status=Exit.USAGE)
    try:
        entries = [one for one in found["jobs"] if (one["label"], one["number"]) == (label, number)]
        if entries:
            return jobs.from_json(entries[0])
        known = ", ".join(f"{one['label']} {one['number']}" for one in found["jobs"][:5])
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise UserError(f"{path}: a job is damaged: {error!r}", status=Exit.USAGE) from None
    raise UserError(
        f"{path} has no run {number} of {label}",
        hint=f"it has {known}" if known else "it has none",
        status=Exit.USAGE,
    )
