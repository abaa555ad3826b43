# SPDX-License-Identifier: GPL-2.0-or-later
"""Programs of this machine that ask another one: ssh, rsync, and Slurm's commands."""

import subprocess
from dataclasses import dataclass

from errors import UserError


class NoAnswer(Exception):
    """Another machine did not answer, in one line. It may answer later."""


@dataclass(frozen=True)
class Answer:
    """What a program came to. error: what it said on stderr, lines without the empty ones."""

    status: int
    output: str
    error: list[str]


def ask(command: list[str], within_s: float, hint: str, data: bytes = b"") -> Answer:
    """Run it, data on its stdin; NoAnswer if it takes longer, UserError if it is not here."""
    try:
        done = subprocess.run(
            command, input=data, capture_output=True, timeout=within_s, start_new_session=True
        )
    except subprocess.TimeoutExpired:
        raise NoAnswer(f"{command[0]}: no answer within {within_s:.0f} s") from None
    except OSError as error:
        raise UserError(f"{command[0]}: {error.strerror}", hint=hint) from None
    output, said = (text.decode("utf-8", "replace") for text in (done.stdout, done.stderr))
    return Answer(done.returncode, output, said.strip().splitlines())
