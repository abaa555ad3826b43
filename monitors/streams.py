# SPDX-License-Identifier: GPL-2.0-or-later
"""What is recorded."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Stream:
    """A program whose output is a stream: env is its whole environment.

    One that waits prints `ready` when it has started up, and begins when it reads a line: neither
    is a part of its stream.
    """

    name: str
    argv: list[str]
    env: dict[str, str]
    waits: bool = False
