# SPDX-License-Identifier: GPL-2.0-or-later
"""The memory through which a guest's results leave it: layout, and how Python writes to it.

A guest has one PCI device whose memory is a file on the host (QEMU's ivshmem-plain). A process
that writes results maps its own part of it, a lane: no driver, no system call and no memory of the
guest's kernel is needed for a write, and what was written is on the host, whatever becomes of the
guest. A lane is a ring of records, whose files the host appends to (vm/results_memory.py);
monitors/lane.c writes the same from C. On a real machine the files are plain files.

A lane: the bytes put so far (by the guest, at PUT) and the bytes taken (by the host, at TAKEN),
both 64 bits; from NAMES on the names of its files, NAME_BYTES for each, zeros behind it; from DATA
on the ring. A record: RECORD (ns of CLOCK_MONOTONIC, bytes, number of the file in this lane), its
bytes, zeros up to a multiple of 8. All in the machine's order of bytes: x86-64's.
"""

import io
import mmap
import os
import struct
import time
from pathlib import Path
from typing import Any

# In the results' folder of a guest: a link to the device's memory.
LINK = ".results-memory"
LANES = ("runner", "sampler", "recorder", "evidence", "keys")
LANE_BYTES = 4 << 20
MEMORY_BYTES = LANE_BYTES << (len(LANES) - 1).bit_length()  # of PCI memory: a power of two
PUT, TAKEN, NAMES, DATA = 0, 64, 128, 4096
NAME_BYTES = 64
FILES = (DATA - NAMES) // NAME_BYTES  # at the most
RING_BYTES = LANE_BYTES - DATA
RECORD = struct.Struct("=QII")
ALIGNMENT = 8
PIECE = 64 << 10  # bytes of a record at the most
WAIT_S = 0.01


class Lane:
    """The runner's lane in a guest, mapped."""

    def __init__(self, memory: Path) -> None:
        file = os.open(memory, os.O_RDWR | os.O_CLOEXEC)
        try:
            self._memory = mmap.mmap(file, LANE_BYTES)
        finally:
            os.close(file)
        self._counters = memoryview(self._memory).cast("Q")
        self._taken = 0  # as it was at the last look

    def add(self, name: str) -> int:
        """The number of a file, which may have one of a process before."""
        padded = name.encode().ljust(NAME_BYTES, b"\0")
        for number in range(FILES):
            at = NAMES + number * NAME_BYTES
            if not self._memory[at]:
                self._memory[at : at + NAME_BYTES] = padded
            if self._memory[at : at + NAME_BYTES] == padded:
                return number
        raise ValueError(f"{name}: a lane has {FILES} files at the most")

    def put(self, number: int, data: bytes) -> None:
        """Append to a file; waits for the host while the ring is full."""
        for first in range(0, len(data), PIECE):
            self._put(number, data[first : first + PIECE])

    def _put(self, number: int, data: bytes) -> None:
        record = RECORD.pack(time.monotonic_ns(), len(data), number) + data
        record += bytes(-len(record) % ALIGNMENT)
        put = self._counters[PUT // 8]
        # How much the host has taken is of its time, and Python takes another number of
        # instructions for another number: it is looked at only when a ring's worth is written.
        while put + len(record) - self._taken > RING_BYTES:
            self._taken = self._counters[TAKEN // 8]
            if put + len(record) - self._taken > RING_BYTES:
                time.sleep(WAIT_S)
        at = put % RING_BYTES
        first = min(len(record), RING_BYTES - at)
        self._memory[DATA + at : DATA + at + first] = record[:first]
        self._memory[DATA : DATA + len(record) - first] = record[first:]
        # Last, in one store: the host sees all of a record, or nothing.
        self._counters[PUT // 8] = put + len(record)


class _InMemory(io.RawIOBase):
    """A file of a lane."""

    def __init__(self, lane: Lane, name: str) -> None:
        self._lane = lane
        self._number = lane.add(name)

    def writable(self) -> bool:
        return True

    def write(self, data: Any, /) -> int:
        self._lane.put(self._number, bytes(data))
        return memoryview(data).nbytes


_lanes: dict[Path, Lane] = {}  # a process writes to its lane by one counter


def open_appended(path: Path) -> io.RawIOBase:
    """The file of a result at path: in the memory of its folder if that has one, else on disk."""
    memory = path.parent / LINK
    if memory.exists():
        if memory not in _lanes:
            _lanes[memory] = Lane(memory)
        return _InMemory(_lanes[memory], path.name)
    return open(path, "ab", buffering=0)
