# SPDX-License-Identifier: GPL-2.0-or-later
"""Calls Slurm's commands. Uses no accounting database, as a site may have none."""

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from errors import UserError
from run.jobs import programs
from run.jobs.programs import NoAnswer

ANSWER_S = 30.0  # time limit of a command, after which the controller counts as away
# What Slurm's commands print when the controller cannot be reached, or is too busy to answer.
AWAY = re.compile(
    r"unable to contact slurm|socket timed out|connection refused|unable to connect|"
    r"zero bytes were transmitted|message receive failure|unable to establish|"
    r"slurm backup controller|transport endpoint|temporarily unable",
    re.IGNORECASE,
)
# What Slurm prints when the user has as many jobs in the queue as the site permits.
FULL = re.compile(
    r"submit(ted)? ?job ?limit|job violates accounting/qos|MaxJobCount", re.IGNORECASE
)
MAX_ARRAY = re.compile(r"^MaxArraySize\s*=\s*(\d+)", re.MULTILINE)
SQUEUE_FIELDS = "%i|%k|%K|%T|%N|%r"
# States of a job that has ended, or will end without a result.
OVER = frozenset(
    ("BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED", "NODE_FAIL", "OUT_OF_MEMORY")
) | {"PREEMPTED", "TIMEOUT"}


class QueueFull(Exception):
    """Slurm accepts no more jobs of this user now: why, in one line."""


@dataclass(frozen=True)
class QueuedTask:
    """A task of an array, from squeue. job_id: "12_3"; state: in Slurm's spelling."""

    job_id: str
    state: str
    node: str
    reason: str


class Controller:
    """Slurm's commands on this machine; each may raise NoAnswer."""

    def max_array(self) -> int:
        """The site's MaxArraySize: the maximum number of tasks in an array."""
        match = MAX_ARRAY.search(_call(["scontrol", "show", "config"]))
        return max(1, int(match[1])) if match else 1

    def submit(self, name: str, comment: str, tasks: int, words: Sequence[str]) -> None:
        """Submit an array with sbatch; words: more options, the script. QueueFull or UserError."""
        command = ["sbatch", "--parsable", f"--job-name={name}", f"--comment={comment}"]
        _call([*command, f"--array=0-{tasks - 1}%{tasks}", "--no-requeue", *words])

    def tasks(self, name: str) -> dict[tuple[str, int], QueuedTask]:
        """The tasks in squeue by (comment, index), also those that ended within MinJobAge."""
        command = ["squeue", "--noheader", "--array", "--states=all", f"--name={name}"]
        tasks = {}
        for line in _call([*command, f"--format={SQUEUE_FIELDS}"]).splitlines():
            job_id, comment, index, state, node, reason = line.strip().split("|", 5)
            if index.isdigit():
                tasks[comment, int(index)] = QueuedTask(job_id, state, node, reason)
        return tasks

    def cancel(self, job_ids: Sequence[str]) -> None:
        """Cancel jobs with scancel; ended jobs are ignored."""
        _call(["scancel", "--quiet", *job_ids], may_fail=True)


def batch_script(suite: Path, program: Sequence[str]) -> str:
    """The script of a job; program: a module of the suite and its arguments."""
    words = shlex.join(program)
    return (
        "#!/bin/sh\n"
        f"cd {shlex.quote(str(suite))} || exit 1\n"
        'export PYTHONDONTWRITEBYTECODE=1 PYTHONPATH="$PWD${PYTHONPATH:+:$PYTHONPATH}"\n'
        f"exec python3 -m {words}\n"
    )


def _call(command: list[str], may_fail: bool = False) -> str:
    """Run a command of Slurm; returns its output."""
    done = programs.ask(command, ANSWER_S, "--on slurm needs Slurm's commands here")
    if done.status == 0:
        return done.output
    why = done.error[-1] if done.error else f"{command[0]} ended with status {done.status}"
    message = "\n".join(done.error)
    if AWAY.search(message):
        raise NoAnswer(why)
    if FULL.search(message):
        raise QueueFull(why)
    if may_fail:
        return ""
    raise UserError(why, hint=f"see {command[0]}'s options in --on slurm:OPTIONS")
