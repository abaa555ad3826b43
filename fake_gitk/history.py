# SPDX-License-Identifier: GPL-2.0-or-later
"""One pass's data: every commit's raw text, and a table parent -> children.

The text is kept in private anonymous mappings of BLOCK bytes, in the order in which git wrote it;
each copy has its own. Discarding unmaps them without reading the text. The table is a dict with
bytes as keys. In CPython 3.11 a dict whose keys are all str stores no hashes, and reads every key
object when it grows; with bytes the hashes are stored, and growing only touches the table. So this
module decides what a growing table touches: as in Tcl's hash tables, at 3 * 4^n parents all entries
are read, keys and children.
"""

import collections
import mmap
import os
from array import array
from collections.abc import Iterator

from errors import UserError

BLOCK = 8 << 20  # bytes of a mapping
READ = 65536  # bytes: the size of a pipe's buffer
FIRST_GROWTH = 12  # entries, as in Tcl: three for each of four buckets
_OFFSET_BITS = 40


class History:
    """Commits in the order of `git log`; a commit's row is its place in that order, from 0.

    copies: how many of each commit's text are kept, at least 1.
    """

    def __init__(self, copies: int = 1) -> None:
        self.ids: list[bytes] = []
        self.children: dict[bytes, list[bytes]] = {}
        self._grow_at = FIRST_GROWTH
        self._copies = copies
        self._blocks: list[list[mmap.mmap]] = []  # the copies of each
        self._starts = array("Q")  # block number << _OFFSET_BITS | offset in it
        self._lengths = array("I")

    def load(self, fd: int) -> Iterator[int]:
        """Read `git log -z --pretty=raw --parents` from fd.

        Yields the number of commits after each.
        """
        block, *others = self._map(BLOCK)
        begin = fill = 0  # of the unfinished record
        while True:
            if fill == len(block):
                unfinished = block[begin:fill]
                block, *others = self._map(BLOCK * (1 + 4 * len(unfinished) // BLOCK))
                for copy in (block, *others):
                    copy[: len(unfinished)] = unfinished
                begin, fill = 0, len(unfinished)
            with memoryview(block) as view, view[fill : fill + READ] as room:
                got = os.readv(fd, [room])
                ended = got > 0 and b"\0" in bytes(room[:got])
                for copy in others:
                    copy[fill : fill + got] = room[:got]
            fill += got
            if got and not ended:
                continue
            records = block[begin:fill].split(b"\0")
            unfinished = records.pop() if got else b""
            place = len(self._blocks) - 1 << _OFFSET_BITS
            for record in records:
                if record:
                    self._add(record, place + begin)
                    yield len(self.ids)
                begin += len(record) + 1
            if not got:
                return

    def texts(self, row: int) -> list[bytes]:
        """A commit's raw text, as git wrote it, read from each copy."""
        start = self._starts[row]
        offset = start & (1 << _OFFSET_BITS) - 1
        end = offset + self._lengths[row]
        return [copy[offset:end] for copy in self._blocks[start >> _OFFSET_BITS]]

    def discard(self) -> None:
        """Free everything; this touches the table's entries, but not the text."""
        self.children.clear()
        self.ids.clear()
        self._starts = array("Q")
        self._lengths = array("I")
        self._grow_at = FIRST_GROWTH
        while self._blocks:
            for copy in self._blocks.pop():
                copy.close()

    def _map(self, size: int) -> list[mmap.mmap]:
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
        self._blocks.append([mmap.mmap(-1, size, flags=flags) for _ in range(self._copies)])
        return self._blocks[-1]

    def _add(self, record: bytes, start: int) -> None:
        names = names_of(record)
        name = names[0]
        children = self.children
        for parent in names[1:]:
            known = children.get(parent)
            if known is None:
                children[parent] = [name]
                if len(children) == self._grow_at:
                    self._grow()
            else:
                known.append(name)
        self.ids.append(name)
        self._starts.append(start)
        self._lengths.append(len(record))

    def _grow(self) -> None:
        self._grow_at *= 4
        collections.deque(map(hash, self.children), maxlen=0)
        collections.deque(map(len, self.children.values()), maxlen=0)


def names_of(record: bytes) -> list[bytes]:
    """A raw commit's id and its parents' ids, from its first line `commit [-]ID PARENT...`."""
    names = record.partition(b"\n")[0].split(b" ")
    if names[0] != b"commit" or len(names) < 2:
        raise UserError(f"git log printed {record[:60]!r} instead of a commit")
    del names[0]
    names[0] = names[0].lstrip(b"-<>")  # the marks of boundary and other commits
    return names
