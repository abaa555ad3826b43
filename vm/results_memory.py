# SPDX-License-Identifier: GPL-2.0-or-later
"""The host's side of the memory that a guest writes its results to (contract/results_memory.py).

The memory is a file in the run's folder. So the guest's results survive if guest, QEMU or runner
die, and recover() appends them to the run's files later.
"""

import contextlib
import fcntl
import mmap
import os
import threading
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import NamedTuple

from contract.results_memory import (
    ALIGNMENT,
    DATA,
    FILES,
    LANE_BYTES,
    LANES,
    LINK,
    MEMORY_BYTES,
    NAME_BYTES,
    NAMES,
    PIECE,
    PUT,
    RECORD,
    RING_BYTES,
    TAKEN,
)
from contract.run_files import CONSOLE_LOG, META, STATUS
from errors import UserError

EVERY_S = 0.1
OF_THE_HOST = frozenset({META, STATUS, CONSOLE_LOG})  # files of a run that no guest writes


class Damaged(Exception):
    """A guest has overwritten its own records."""


class Record(NamedTuple):
    """Bytes that a guest has appended to a file, and the end of the record in its lane."""

    stamp_ns: int
    name: str
    data: bytes
    end: int


class ResultsMemory:
    """A guest's memory for results, whose content is appended to the files of a run.

    folder: that of the run; names: the files that a guest may append to.
    """

    def __init__(self, folder: Path, names: Collection[str]) -> None:
        self.path = folder / LINK
        self._folder = folder
        self._names = names
        self._file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Not sparse: a write without room on the disk would kill QEMU.
            os.posix_fallocate(self._file, 0, MEMORY_BYTES)
            self._memory = mmap.mmap(self._file, MEMORY_BYTES)
        except BaseException:
            os.close(self._file)
            raise
        self._counters = memoryview(self._memory).cast("Q")
        self._lock = threading.Lock()

    def take(self, *, last: bool = False) -> None:
        """Append what the guest has written since the last call to the run's files.

        The order is that of writing, across all lanes: records that are newer than all those of
        the first look are left for the next call, unless this is the last one. Damaged if the
        guest's records are invalid; OSError if the disk does not take them: then nothing is taken
        and the files are unchanged.
        """
        with self._lock:
            lanes = [number * LANE_BYTES for number in range(len(LANES))]
            seen = [record for lane in lanes for record in self._read(lane)]
            newest = max((record.stamp_ns for record in seen), default=0)
            # By now each lane has all its records that are older than the newest one seen.
            taken = {
                lane: [record for record in self._read(lane) if last or record.stamp_ns <= newest]
                for lane in lanes
            }
            self._append([record for records in taken.values() for record in records])
            for lane, records in taken.items():
                if records:
                    self._counters[(lane + TAKEN) // 8] = records[-1].end

    def close(self) -> None:
        """Take the rest and remove the memory; it is kept if the disk does not take the rest."""
        try:
            self.take(last=True)
            self.path.unlink(missing_ok=True)
        finally:
            self._counters.release()
            self._memory.close()
            os.close(self._file)

    def _read(self, lane: int) -> list[Record]:
        """The waiting records of the lane that begins at this offset."""
        at, end = (self._counters[(lane + counter) // 8] for counter in (TAKEN, PUT))
        if not at <= end <= at + RING_BYTES:
            raise Damaged(f"{end - at} bytes in a ring of {RING_BYTES}")
        records = []
        while at < end:
            stamp_ns, size, number = RECORD.unpack(self._bytes(lane, at, RECORD.size))
            whole = RECORD.size + size + -size % ALIGNMENT
            if size > PIECE or whole > end - at:
                raise Damaged(f"a record of {size} bytes")
            data = self._bytes(lane, at + RECORD.size, size)
            at += whole
            records.append(Record(stamp_ns, self._name(lane, number), data, at))
        return records

    def _bytes(self, lane: int, at: int, size: int) -> bytes:
        at %= RING_BYTES
        first = min(size, RING_BYTES - at)
        ring = lane + DATA
        rest = self._memory[ring : ring + size - first]
        return self._memory[ring + at : ring + at + first] + rest

    def _name(self, lane: int, number: int) -> str:
        at = lane + NAMES + number * NAME_BYTES
        name = self._memory[at : at + NAME_BYTES].rstrip(b"\0").decode("ascii", "replace")
        # A name from a guest must not become any other path on the host.
        if number >= FILES or name not in self._names:
            raise Damaged(f"a file {name!r}, number {number}")
        return name

    def _append(self, records: list[Record]) -> None:
        """Append all records to their files; on an error the files are unchanged."""
        by_name: dict[str, list[bytes]] = {}
        for record in sorted(records, key=lambda record: record.stamp_ns):
            by_name.setdefault(record.name, []).append(record.data)
        with contextlib.ExitStack() as opened:
            sizes = []
            try:
                for name, pieces in by_name.items():
                    file = opened.enter_context(open(self._folder / name, "ab", buffering=0))
                    sizes.append((file, file.tell()))
                    data = memoryview(b"".join(pieces))
                    while data:
                        data = data[file.write(data) :]
            except OSError:
                for file, size in sizes:
                    file.truncate(size)
                raise


@contextlib.contextmanager
def appending(folder: Path, names: Collection[str]) -> Iterator[ResultsMemory]:
    """Provide a memory for the guest of this run; the run's files grow as the guest writes to it.

    All files exist from the start. UserError if the disk has no room for the memory, or in the end
    did not take all of its content.
    """
    try:
        for name in names:
            (folder / name).touch()
        memory = ResultsMemory(folder, names)
    except OSError as error:
        raise UserError(f"{folder}: {error.strerror}", hint="free some space") from error
    over = threading.Event()

    def take_some() -> None:
        while not over.wait(EVERY_S):
            # A full disk may have room again; the guest drops what does not fit meanwhile.
            with contextlib.suppress(OSError, Damaged):
                memory.take()

    thread = threading.Thread(target=take_some, daemon=True)
    thread.start()
    try:
        yield memory
    finally:
        over.set()
        thread.join()
        _close(memory)


def recover(folder: Path) -> None:
    """Append to a run's files what its guest had written before its runner was killed."""
    if not (folder / LINK).exists():
        return
    names = {path.name for path in folder.iterdir() if path.is_file() and path.name[0] != "."}
    with contextlib.suppress(BlockingIOError):  # its run is under way
        _close(ResultsMemory(folder, names - OF_THE_HOST))


def _close(memory: ResultsMemory) -> None:
    try:
        memory.close()
    except OSError as error:
        raise UserError(f"{memory.path}: {error.strerror}", hint="free some space") from error
    except Damaged as error:
        raise UserError(f"the guest's results are damaged: {error} ({memory.path})") from None
