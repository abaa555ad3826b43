# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs local programs that talk to other machines: ssh, rsync, and Slurm's commands."""

import subprocess
from dataclasses import dataclass

from errors import UserError


class NoAnswer(Exception):
    """Another machine did not answer: why, in one line. It may answer later."""


@dataclass(frozen=True)
class Answer:
    """The result of a program: exit status, stdout, and the lines of stderr."""

    status: int
    output: str
    error: list[str]


def ask(command: list[str], within_s: float, hint: str, data: bytes = b"") -> Answer:
    """Run a command, data on its stdin; NoAnswer after within_s seconds, UserError if missing."""
    try:
        done = subprocess.run(
            command, input=data, capture_output=True, timeout=within_s, start_new_session=True
        )
    except subprocess.TimeoutExpired:
        raise NoAnswer(f"{command[0]}: no answer within {within_s:.0f} s") from None
    except OSError as error:
        raise UserError(f"{command[0]}: {error.strerror}", hint=hint) from None
    output, messages = (text.decode("utf-8", "replace") for text in (done.stdout, done.stderr))
    return Answer(done.returncode, output, messages.strip().splitlines())
