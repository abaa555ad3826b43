# SPDX-License-Identifier: GPL-2.0-or-later
"""Where the recorder shows, at almost no cost a line, which stream printed when.

A page of memory that two processes map, and an eventfd. Per stream three native words, each
written at once: pid of its program (0: none any more), CLOCK_MONOTONIC ns of its last line (or of
the start), lines so far. The eventfd is poked when a line ends a silence of SILENCE_NS.
"""

from __future__ import annotations

import mmap
import os

SILENCE_NS = 500_000_000
WORDS = 3


class Beacon:
    """The streams' signs of life, by their place in `names`."""

    def __init__(self, names: list[str], fds: tuple[int, int] | None = None) -> None:
        """A new one, or with `fds` the one whose fds these are (in another process)."""
        self.names = names
        size = max(1, len(names)) * WORDS * 8
        if fds is None:
            memory = os.memfd_create("beacon", os.MFD_CLOEXEC)
            os.truncate(memory, size)
            fds = (memory, os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC))
        self.fds = fds
        self._map = mmap.mmap(fds[0], size)
        self._words = memoryview(self._map).cast("Q")

    def began(self, slot: int, pid: int, now_ns: int) -> None:
        """This stream's program has begun."""
        self._words[WORDS * slot + 1] = now_ns
        self._words[WORDS * slot] = pid

    def said(self, slot: int, now_ns: int, lines: int) -> None:
        """This stream's last line came now; lines: how many there were in all."""
        words, at = self._words, WORDS * slot + 1
        silent = now_ns - words[at]
        words[at] = now_ns
        words[at + 1] = lines
        if silent >= SILENCE_NS:
            self._poke()

    def lines(self, slot: int) -> int:
        """How many lines it has printed."""
        return self._words[WORDS * slot + 2]

    def state(self) -> list[int]:
        """All words at once: WORDS for each stream."""
        return self._words.tolist()

    def heard(self) -> None:
        """Take the pokes that have come."""
        try:
            os.eventfd_read(self.fds[1])
        except BlockingIOError:
            return

    def close(self) -> None:
        """Close both fds and forget the memory."""
        self._words.release()
        self._map.close()
        for fd in self.fds:
            os.close(fd)

    def _poke(self) -> None:
        try:
            os.eventfd_write(self.fds[1], 1)
        except BlockingIOError:
            return
