# SPDX-License-Identifier: GPL-2.0-or-later
"""Slurm's own commands. No accounting database is asked: a site may have none."""

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from errors import UserError
from run.jobs import programs
from run.jobs.programs import NoAnswer

ANSWER_S = 30.0  # within which a command has to answer; without one, the controller is away
# What Slurm's commands print when the controller cannot be reached, or is too busy to answer.
AWAY = re.compile(
    r"unable to contact slurm|socket timed out|connection refused|unable to connect|"
    r"zero bytes were transmitted|message receive failure|unable to establish|"
    r"slurm backup controller|transport endpoint|temporarily unable",
    re.IGNORECASE,
)
# What it prints when the user has as many jobs in the queue as the site permits.
FULL = re.compile(
    r"submit(ted)? ?job ?limit|job violates accounting/qos|MaxJobCount", re.IGNORECASE
)
MAX_ARRAY = re.compile(r"^MaxArraySize\s*=\s*(\d+)", re.MULTILINE)
SQUEUE_FIELDS = "%i|%k|%K|%T|%N|%r"
# States of a job that is over, or ends without its result if it is not.
OVER = frozenset(
    ("BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED", "NODE_FAIL", "OUT_OF_MEMORY")
) | {"PREEMPTED", "TIMEOUT"}


class QueueFull(Exception):
    """Slurm takes no more jobs of this user's now, in one line."""


@dataclass(frozen=True)
class QueuedTask:
    """A task of an array as squeue shows it. job_id: "12_3"; state: as Slurm spells it."""

    job_id: str
    state: str
    node: str
    reason: str


class Controller:
    """Slurm's commands on this machine; each may raise NoAnswer."""

    def max_array(self) -> int:
        """MaxArraySize of the site: how many tasks an array may have."""
        found = MAX_ARRAY.search(_call(["scontrol", "show", "config"]))
        return max(1, int(found[1])) if found else 1

    def submit(self, name: str, comment: str, tasks: int, words: Sequence[str]) -> None:
        """sbatch of so many tasks; QueueFull or UserError. words: more options, and the script."""
        command = ["sbatch", "--parsable", f"--job-name={name}", f"--comment={comment}"]
        _call([*command, f"--array=0-{tasks - 1}%{tasks}", "--no-requeue", *words])

    def tasks(self, name: str) -> dict[tuple[str, int], QueuedTask]:
        """squeue by (comment, index), with those that ended within the site's MinJobAge."""
        command = ["squeue", "--noheader", "--array", "--states=all", f"--name={name}"]
        tasks = {}
        for line in _call([*command, f"--format={SQUEUE_FIELDS}"]).splitlines():
            job_id, comment, index, state, node, reason = line.strip().split("|", 5)
            if index.isdigit():
                tasks[comment, int(index)] = QueuedTask(job_id, state, node, reason)
        return tasks

    def cancel(self, job_ids: Sequence[str]) -> None:
        """scancel; those that are over are ignored."""
        _call(["scancel", "--quiet", *job_ids], may_fail=True)


def batch_script(suite: Path, program: Sequence[str]) -> str:
    """The script of a job; program: module of the suite and its arguments."""
    words = shlex.join(program)
    return (
        "#!/bin/sh\n"
        f"cd {shlex.quote(str(suite))} || exit 1\n"
        'export PYTHONDONTWRITEBYTECODE=1 PYTHONPATH="$PWD${PYTHONPATH:+:$PYTHONPATH}"\n'
        f"exec python3 -m {words}\n"
    )


def _call(command: list[str], may_fail: bool = False) -> str:
    """What the command printed."""
    done = programs.ask(command, ANSWER_S, "--on slurm needs Slurm's commands here")
    if done.status == 0:
        return done.output
    why = done.error[-1] if done.error else f"{command[0]} ended with status {done.status}"
    said = "\n".join(done.error)
    if AWAY.search(said):
        raise NoAnswer(why)
    if FULL.search(said):
        raise QueueFull(why)
    if may_fail:
        return ""
    raise UserError(why, hint=f"see {command[0]}'s options in --on slurm:OPTIONS")
