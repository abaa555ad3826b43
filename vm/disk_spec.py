# SPDX-License-Identifier: GPL-2.0-or-later
"""A modelled disk: its description in QEMU's environment for the library of qemu_disk_model/, and
the counts that the library prints at the end."""

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
    """A disk that does `iops` random requests of no length per second, one after the other.

    bytes_per_s: rate of its interface, or of the platter under its head. parallel: simultaneous
    accesses of a disk that does not rotate. depth, queues: shown to the guest's driver. On a
    rotating disk a request waits for others at most as long as `depth` accesses take.
    """

    rotates: bool
    iops: int
    bytes_per_s: int
    parallel: int
    depth: int
    queues: int

    def words(self, file: int) -> str:
        """The disk's description for the library; file: a descriptor of it."""
        status = os.fstat(file)
        numbers = (status.st_dev, status.st_ino, int(self.rotates), self.parallel, self.depth)
        words = [*numbers, 1_000_000_000 // self.iops, self.bytes_per_s]
        return " ".join(map(str, words))


def environment(disks: Sequence[tuple[DiskModel, int]]) -> dict[str, str]:
    """The library's environment for several disks: pairs of a model and a file descriptor."""
    if not disks:
        return {}
    models = ";".join(model.words(file) for model, file in disks)
    return {"DISK_MODEL": models, "DISK_MODEL_SAY": "1"}


class Served(NamedTuple):
    """The numbers of all requests of the disks, of those that ended at the disk's time and not at a
    stop of the guest, and of those that were chosen for their age alone."""

    requests: int
    in_time: int
    aged: int


def complaints(text: str) -> list[str]:
    """The lines of QEMU's stderr without the library's usual ones."""
    return [
        line
        for line in text.strip().splitlines()
        if line != BEGINS and COUNTS.fullmatch(line) is None
    ]


def served(text: str) -> Served | None:
    """The library's counts at QEMU's end; None if it held no request, or QEMU was killed."""
    counts = COUNTS.search(text)
    return Served(*map(int, counts.groups())) if counts else None
