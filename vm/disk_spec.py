# SPDX-License-Identifier: GPL-2.0-or-later
"""A modelled disk: what QEMU's environment says of it to the library of disk_library/, and what
that says of it in the end."""

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

BEGINS = "disk model: on"
COUNTS = re.compile(
    r"^disk model: held (\d+), done in their time (\d+), taken for their age (\d+)$", re.MULTILINE
)


@dataclass(frozen=True)
class DiskModel:
    """A disk: iops requests of no length a second, one after the other at places not foreseen.

    bytes_per_s: of its interface, or of the platter under its head. parallel: accesses at a time,
    of a disk that does not rotate; depth and queues: what the guest's driver is told; of a
    rotating one depth accesses are also what a request waits for others at the most.
    """

    rotates: bool
    iops: int
    bytes_per_s: int
    parallel: int
    depth: int
    queues: int

    def words(self, file: int) -> str:
        """What the library is told of the disk; file: a descriptor of it."""
        found = os.fstat(file)
        numbers = (found.st_dev, found.st_ino, int(self.rotates), self.parallel, self.depth)
        words = [*numbers, 1_000_000_000 // self.iops, self.bytes_per_s]
        return " ".join(map(str, words))


def environment(disks: Sequence[tuple[DiskModel, int]]) -> dict[str, str]:
    """What the library is told of several disks: the model of each, and a descriptor of it."""
    if not disks:
        return {}
    models = ";".join(model.words(file) for model, file in disks)
    return {"DISK_MODEL": models, "DISK_MODEL_SAY": "1"}


class Served(NamedTuple):
    """How many requests the disks had, how many of them ended in the disk's time and not at a stop
    of the guest, and how many were next for their age alone."""

    requests: int
    in_time: int
    aged: int


def complaints(text: str) -> list[str]:
    """The lines of QEMU's stderr without those that the library writes when all is well."""
    return [
        line
        for line in text.strip().splitlines()
        if line != BEGINS and COUNTS.fullmatch(line) is None
    ]


def served(text: str) -> Served | None:
    """What the library said at QEMU's end; None if it held no request, or QEMU was killed."""
    counts = COUNTS.search(text)
    return Served(*map(int, counts.groups())) if counts else None
