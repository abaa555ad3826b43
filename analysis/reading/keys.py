# SPDX-License-Identifier: GPL-2.0-or-later
"""Reads the keys that were pressed at waiting programs, from the lines of stream `keys`.

docs/reference/results-format.md describes the lines. An impossible line is left out and counted in
`unread`.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass

from analysis.reading.streams import Stream

DUE = re.compile(r"due (\d{1,9}) (\S{1,40}) idle (\d{1,8}\.\d{3})")
SHOWN = re.compile(r"key (\d{1,9}) (\S{1,40}) late (\d{1,8}\.\d{3})")
ENDED = re.compile(r"ended (\S{1,40}) status (-?\d{1,5})")


@dataclass(frozen=True)
class Key:
    """A key that was due at `due` (elapsed s), `idle` s after the program's previous key.

    late: seconds until the program showed it; if not `shown`, seconds for which it did not.
    """

    number: int
    program: str
    due: float
    idle: float
    late: float
    shown: bool


@dataclass(frozen=True)
class EndedProgram:
    """A program that ended before the run did; at: elapsed s; status: -N if signal N ended it."""

    name: str
    at: float
    status: int


@dataclass(frozen=True)
class Keys:
    """The keys of a run; unread: number of lines that could not be read."""

    keys: tuple[Key, ...]
    ended: tuple[EndedProgram, ...] = ()
    unread: int = 0

    def of(self, wanted: Callable[[str], bool]) -> "Keys":
        """Those of the programs with such a name."""
        return Keys(
            tuple(key for key in self.keys if wanted(key.program)),
            tuple(program for program in self.ended if wanted(program.name)),
            self.unread,
        )


def read_keys(stream: Stream, until: float) -> Keys:
    """The keys that were due before `until` (elapsed s), in order.

    A program shows keys in the order in which it gets them. If a key was not shown but a later key
    was, its line was lost, and the key is left out.
    """
    due: dict[int, Key] = {}
    late: dict[int, float] = {}
    ended: dict[str, EndedProgram] = {}
    unread = 0
    for at, line in zip(stream.elapsed.tolist(), stream.lines, strict=True):
        if match := DUE.fullmatch(line):
            key = Key(int(match[1]), match[2], at, float(match[3]), 0.0, False)
            unread += key.number in due
            due.setdefault(key.number, key)
        elif match := SHOWN.fullmatch(line):
            number, of = int(match[1]), due.get(int(match[1]))
            fits = of is not None and of.program == match[2] and number not in late
            if fits:
                late[number] = float(match[3])
            unread += not fits
        elif match := ENDED.fullmatch(line):
            ended.setdefault(match[1], EndedProgram(match[1], at, int(match[2])))
        else:
            unread += 1
    last_shown = {due[number].program: number for number in sorted(late)}
    keys = []
    for number, key in sorted(due.items()):
        if key.due >= until:
            continue
        end = min(until, ended[key.program].at) if key.program in ended else until
        if number in late and key.due + late[number] <= until:
            keys.append(Key(number, key.program, key.due, key.idle, late[number], True))
        elif number in late or number > last_shown.get(key.program, -1):
            keys.append(Key(number, key.program, key.due, key.idle, max(0.0, end - key.due), False))
        else:
            unread += 1
    gone = tuple(program for program in ended.values() if program.at < until)
    return Keys(tuple(keys), gone, unread)
