# SPDX-License-Identifier: GPL-2.0-or-later
"""Requests and bios whose end was not seen: found with sysfs's help, and dropped.

A program that was interrupted by its own kind, or that found no room, may miss an end: what began
would stay in flight, and its device busy, for ever.
"""

from __future__ import annotations

import os

from monitors.trace.columns import ALWAYS

TYPE_CHECKING = False  # what only annotations name is not loaded
if TYPE_CHECKING:
    from monitors.trace import bpf

# What began less than that ago is not dropped. The device mapper counts a bio only once dm-crypt
# has encrypted it (5.18, kernel commit e5524e128f6f), and it may have to queue long for that.
OLD_NS, OLD_MAPPED_NS = 200_000_000, 30_000_000_000
LOOKS = 8  # so many in a row must find too much where the device has something in flight, else 2
MOST = 1024  # entries that one look goes through


class InFlight:
    """What one device has in flight, as the programs count it and as sysfs does."""

    def __init__(self, name: str, folder: str, entries: bpf.Map, sums: bpf.Sums) -> None:
        """folder: the device's, in sysfs; OSError if it does not say what is in flight."""
        self.name = name
        self._begun = ALWAYS.index(f"{name}_in_flight")
        self._dropped = ALWAYS.index(f"{name}_dropped")
        self._entries, self._sums = entries, sums
        self._inflight = os.open(f"{folder}/inflight", os.O_RDONLY | os.O_CLOEXEC)
        self._suspended = -1
        if os.access(f"{folder}/dm/suspended", os.R_OK):
            self._suspended = os.open(f"{folder}/dm/suspended", os.O_RDONLY | os.O_CLOEXEC)
        # Those in a row that found too much: when, how much, what there is by sysfs.
        self._looks: list[tuple[int, int, int]] = []
        self.dropped = 0  # so far

    def check(self, now: int) -> None:
        """Drop the oldest of what exceeds sysfs's count look by look; now: monotonic ns."""
        there = excess = 0
        if (count := self._count()) > 0:
            try:
                there = sum(int(word) for word in os.pread(self._inflight, 64, 0).split())
                if self._suspended < 0 or not int(os.pread(self._suspended, 64, 0)):
                    # Once more: what has ended meanwhile is no excess.
                    excess = min(count, self._count()) - there
            except OSError:
                excess = 0
        if excess <= 0:
            self._looks.clear()
            return
        self._looks = [*self._looks[1 - LOOKS :], (now, excess, there)]
        needed = LOOKS if any(look[2] for look in self._looks[-2:]) else 2
        last = self._looks[-needed:]
        if len(last) == needed:
            old = OLD_NS if self._suspended < 0 else OLD_MAPPED_NS
            self._drop(min(look[1] for look in last), min(last[0][0], now - old))
            self._looks.clear()

    def close(self) -> None:
        """Close what it holds open."""
        for fd in (self._inflight, self._suspended):
            if fd >= 0:
                os.close(fd)

    def _count(self) -> int:
        sums = self._sums.read()
        return sums[self._begun] - sums[self._dropped]

    def _drop(self, count: int, before: int) -> None:
        # Only this process writes to what was dropped, and a program counts an end only if it was
        # the one to take the entry away: neither can be in the other's way.
        begun = [
            (int.from_bytes(value[:8], "little"), key) for key, value in self._entries.items(MOST)
        ]
        oldest = [key for when, key in sorted(begun)[:count] if when < before]
        self.dropped += sum(self._entries.remove(key) for key in oldest)
        self._sums.write(self._dropped, self.dropped)
