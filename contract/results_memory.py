# SPDX-License-Identifier: GPL-2.0-or-later
"""The shared memory through which results leave a guest: its layout, and how Python writes to it.

A guest has one PCI device whose memory is a file on the host (QEMU's ivshmem-plain). Each process
that writes results maps its own part of that memory, a lane: a write needs no driver, no system
call and no memory of the guest's kernel, and its data is on the host whatever happens to the
guest. A lane is a ring of records, which the host appends to files (vm/results_memory.py);
monitors/lane.c writes the same from C. On a real machine the files are plain files.

A lane has: the number of bytes put so far (by the guest, at PUT) and taken so far (by the host, at
TAKEN), both 64 bits; from NAMES on the names of its files, each NAME_BYTES long, padded with zeros;
from DATA on the ring. A record has: RECORD (ns of CLOCK_MONOTONIC, bytes, the file's number in this
lane), its bytes, zeros up to a multiple of 8. The byte order is x86-64's.
"""

import io
import mmap
import os
import struct
import time
from pathlib import Path
from typing import Any

# In a guest's results folder: a link to the device's memory.
LINK = ".results-memory"
LANES = ("runner", "sampler", "recorder", "evidence", "keys")
LANE_BYTES = 4 << 20
MEMORY_BYTES = LANE_BYTES << (len(LANES) - 1).bit_length()  # PCI memory has to be a power of two
PUT, TAKEN, NAMES, DATA = 0, 64, 128, 4096
NAME_BYTES = 64
FILES = (DATA - NAMES) // NAME_BYTES  # at most, per lane
RING_BYTES = LANE_BYTES - DATA
RECORD = struct.Struct("=QII")
ALIGNMENT = 8
PIECE = 64 << 10  # at most, bytes of data per record
WAIT_S = 0.01


class Lane:
    """The runner's lane in a guest, mapped into memory."""

    def __init__(self, memory: Path) -> None:
        file = os.open(memory, os.O_RDWR | os.O_CLOEXEC)
        try:
            self._memory = mmap.mmap(file, LANE_BYTES)
        finally:
            os.close(file)
        self._counters = memoryview(self._memory).cast("Q")
        self._taken = 0  # bytes, as last read

    def add(self, name: str) -> int:
        """The file's number in this lane; a name that is already there keeps its number."""
        padded = name.encode().ljust(NAME_BYTES, b"\0")
        for number in range(FILES):
            at = NAMES + number * NAME_BYTES
            if not self._memory[at]:
                self._memory[at : at + NAME_BYTES] = padded
            if self._memory[at : at + NAME_BYTES] == padded:
                return number
        raise ValueError(f"{name}: a lane has {FILES} files at the most")

    def put(self, number: int, data: bytes) -> None:
        """Append data to the file with this number; waits for the host while the ring is full."""
        for first in range(0, len(data), PIECE):
            self._put(number, data[first : first + PIECE])

    def _put(self, number: int, data: bytes) -> None:
        record = RECORD.pack(time.monotonic_ns(), len(data), number) + data
        record += bytes(-len(record) % ALIGNMENT)
        put = self._counters[PUT // 8]
        # TAKEN depends on the host's speed, and the number of instructions that Python needs
        # depends on the value: to stay reproducible, read it only when the ring seems full.
        while put + len(record) - self._taken > RING_BYTES:
            self._taken = self._counters[TAKEN // 8]
            if put + len(record) - self._taken > RING_BYTES:
                time.sleep(WAIT_S)
        at = put % RING_BYTES
        first = min(len(record), RING_BYTES - at)
        self._memory[DATA + at : DATA + at + first] = record[:first]
        self._memory[DATA : DATA + len(record) - first] = record[first:]
        # Stored last, at once: the host sees either the whole record or nothing of it.
        self._counters[PUT // 8] = put + len(record)


class _InMemory(io.RawIOBase):
    """A file in a lane."""

    def __init__(self, lane: Lane, name: str) -> None:
        self._lane = lane
        self._number = lane.add(name)

    def writable(self) -> bool:
        return True

    def write(self, data: Any, /) -> int:
        self._lane.put(self._number, bytes(data))
        return memoryview(data).nbytes


_lanes: dict[Path, Lane] = {}  # one Lane per process: a lane has one counter of bytes put


def open_appended(path: Path) -> io.RawIOBase:
    """Open a result file for appending: in its folder's shared memory if any, else on disk."""
    memory = path.parent / LINK
    if memory.exists():
        if memory not in _lanes:
            _lanes[memory] = Lane(memory)
        return _InMemory(_lanes[memory], path.name)
    return open(path, "ab", buffering=0)
