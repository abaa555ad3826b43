# SPDX-License-Identifier: GPL-2.0-or-later
"""The programs that observers start: what is recorded, and what is typed at."""

from dataclasses import dataclass
from typing import TypeVar


@dataclass(frozen=True)
class Program:
    """A command; env is its whole environment."""

    name: str
    argv: list[str]
    env: dict[str, str]


@dataclass(frozen=True)
class Stream(Program):
    """A program whose output is a stream.

    One that waits prints `ready` when it has started up, and begins when it reads a line: neither
    is a part of its stream.
    """

    waits: bool = False


@dataclass(frozen=True)
class KeyProgram(Program):
    """A program that waits for the keys that an observer presses.

    before: what is typed first, so that it shows letters. window: it waits in a window of the X
    server that its environment names (DISPLAY, XAUTHORITY), else behind a terminal.
    """

    before: str = ""
    window: bool = False


AnyProgram = TypeVar("AnyProgram", bound=Program)
