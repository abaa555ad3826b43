# SPDX-License-Identifier: GPL-2.0-or-later
"""Opens the workers of a campaign in Slurm, and cancels what is left in the queue."""

import contextlib
import io
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path

from errors import UserError
from run.hosts import sending
from run.hosts.kept import Kept
from run.jobs.elsewhere import Blocks
from run.jobs.job import Job
from run.jobs.programs import NoAnswer
from run.preparation import say
from run.slurm import options
from run.slurm.arrays import Arrays
from run.slurm.controller import Controller
from run.slurm.slurm_workers import SlurmWorkers
from setup import cache

PROGRAMS = ("sbatch", "scancel", "scontrol", "squeue")


def name_of(campaign: str) -> str:
    """The name of all jobs of a campaign in Slurm."""
    return f"desktop-freeze-{campaign}"


@contextlib.contextmanager
def workers(
    where: str,
    now: Kept,
    folder: Path,
    job: Job,
    done: Callable[[Path, str], None],
    blocks: Blocks | None,
) -> Iterator[SlurmWorkers]:
    """The workers for a campaign's runs in the folder; job: the proof of the nodes."""
    slurm = options.parse(where)
    arrays = Arrays(slurm, folder, _suite(), job)
    name = name_of(now.campaign)
    try:
        doing = SlurmWorkers(Controller(), slurm.slots, name, folder, arrays, done, blocks)
    except NoAnswer as error:
        raise UserError(f"Slurm's controller does not answer: {error}") from None
    how = ", each with a node of its own" if blocks else ""
    say(f"in Slurm's queue: at most {slurm.slots} runs at a time{how}, as {name}")
    try:
        yield doing
    finally:
        doing.close()


def leave(before: Kept) -> None:
    """Cancel a campaign's jobs in Slurm's queue, which nobody needs any more."""
    try:
        queue = Controller()
        tasks = queue.tasks(name_of(before.campaign))
        if tasks:
            queue.cancel([task.job_id for task in tasks.values()])
    except (NoAnswer, UserError) as error:
        say(f"what is in Slurm's queue of this campaign stays there: {error}")


def _suite() -> Path:
    """The suite's folder for the nodes: unpacked in the shared cache, named by its digest."""
    digest, packed = sending.suite()

    def unpack(place: Path) -> None:
        place.mkdir()
        with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
            # Debian 12's Python (3.11.2) has no filters yet.
            archive.extraction_filter = getattr(tarfile, "data_filter", None)
            archive.extractall(place)

    return cache.built("suites-for-nodes", digest, unpack)
