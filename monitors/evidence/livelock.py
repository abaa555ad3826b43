# SPDX-License-Identifier: GPL-2.0-or-later
"""Tells a live-lock from a stall: nothing moves any more, and yet the kernel works flat out.

Fed once a second by an observer. The original of this test left a machine "spewing out error
messages" for eight hours: such a run ends here, with its evidence. Flat out is reclaim that scans
much and gets next to nothing for it, or a flood of the kernel's warnings. A machine that waits
(for a frozen or a slow disk, for a program that was stopped) is none, nor one that was itself
stopped for a while: what waits for swap-in gets its pages from reclaim, if few. Failed allocations
count as far as the kernel logs them: hundreds a second are usual that have something to fall back
to (mempool_alloc).
"""

from __future__ import annotations

import os

from contract.run_files import GITK

LINES_PER_S = 1 / 60  # all gitk's together: not more than this is (nearly) nothing
BUSY = 0.8  # share of the time in which reclaim runs flat out, or warnings pour in
GAP_S = 10.0  # between two feeds: then we, and so the machine, did not run
SCANNED, SCANNED_AT_MOST = 0.25, 50_000  # of all memory, and pages: a second, is flat out
TAKEN = 0.1  # of the pages scanned: reclaim that gets so many makes progress
FLOOD = 5.0  # warnings or worse in the kernel's log, a second
WARNING = 4  # KERN_WARNING

PERIOD_S = 0.9  # between two looks: a second, at ticks that may come a little early
CHUNK, RECORD_BYTES = 16384, 16384
MOST_RECORDS = 64  # of the log that one look counts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from monitors.beacon import Beacon

    Sample = tuple[float, int, float, int, int, int]  # LiveLock._window's


class LiveLock:
    """A sliding window of `after_s` seconds; pages: of the machine's memory."""

    def __init__(self, after_s: float, pages: int) -> None:
        self._after_s = after_s
        self._flat_out = min(SCANNED * pages, SCANNED_AT_MOST)
        # When, lines, seconds of it that were busy, pages scanned and taken, records; all sums.
        self._window: list[Sample] = []

    def feed(self, now: float, lines: int, scanned: int, taken: int, records: int) -> str:
        """Why this is a live-lock, with figures; empty if it is none (yet).

        now: monotonic s; so far: lines of all gitk's; pages that reclaim scanned, and took
        (`pages`); warnings in the kernel's log.
        """
        window = self._window
        if window:
            then, _, busy, *before = window[-1]
            spent = now - then
            if not 0 < spent <= GAP_S or lines < window[-1][1]:
                window.clear()
                busy = 0.0
            else:
                looked, got, said = scanned - before[0], taken - before[1], records - before[2]
                in_vain = looked >= self._flat_out * spent and got < TAKEN * looked
                if in_vain or said >= FLOOD * spent:
                    busy += spent
        else:
            busy = 0.0
        window.append((now, lines, busy, scanned, taken, records))
        while len(window) > 2 and window[1][0] <= now - self._after_s:
            del window[0]
        first = window[0]
        long = now - first[0]
        if long < self._after_s or lines - first[1] > LINES_PER_S * long:
            return ""
        if busy - first[2] < BUSY * long:
            return ""
        per_s = (scanned - first[3]) / long, (taken - first[4]) / long
        return (
            f"live-lock: {lines - first[1]} lines of all gitk's in {long:.0f} s, while the kernel "
            f"scanned {per_s[0]:.0f} pages a second, took {per_s[1]:.0f} of them, "
            f"and its log got {records - first[5]} warnings"
        )


def pages(vmstat: bytes, what: bytes) -> int:
    """Pages that reclaim has looked at (`pgscan`) or taken (`pgsteal`) so far, by /proc/vmstat.

    Up to 4.7 (e1a556374abc) a counter for each zone, `pgscan_direct_normal`; pgscan_direct_throttle
    counts something else. pgscan_anon and pgscan_file (5.8) are the same pages once more.
    """
    total = 0
    for line in vmstat.split(b"\n"):
        if line.startswith((what + b"_kswapd", what + b"_direct")):
            name, _, value = line.partition(b" ")
            if name != b"pgscan_direct_throttle":
                total += int(value)
    return total


class Watch:
    """Feeds a LiveLock from the beacon, /proc/vmstat and the kernel's log, once a second."""

    def __init__(self, beacon: Beacon, after_s: float, log: str = "/dev/kmsg") -> None:
        self._beacon = beacon
        names = enumerate(beacon.names)
        self._slots = [slot for slot, name in names if name.startswith(GITK)]
        self._vmstat = os.open("/proc/vmstat", os.O_RDONLY | os.O_CLOEXEC)
        self._lock = LiveLock(after_s, os.sysconf("SC_PHYS_PAGES"))
        self._records = 0
        self._log = -1
        try:
            self._log = os.open(log, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            os.lseek(self._log, 0, os.SEEK_END)
        except OSError:
            pass
        self._at = 0.0
        self._said = False

    def rehearse(self) -> None:
        """Do once what look() does, without a trace."""
        pages(self._read(), b"pgscan")
        self._count()

    def look(self, now: float) -> str:
        """Why this is a live-lock, the first time that it is one; now: monotonic s."""
        if self._said or now - self._at < PERIOD_S:
            return ""
        self._at = now
        self._count()
        lines = sum(self._beacon.lines(slot) for slot in self._slots)
        vmstat = self._read()
        scanned, taken = pages(vmstat, b"pgscan"), pages(vmstat, b"pgsteal")
        why = self._lock.feed(now, lines, scanned, taken, self._records)
        self._said = bool(why)
        return why

    def _read(self) -> bytes:
        data = b""
        while piece := os.pread(self._vmstat, CHUNK, len(data)):
            data += piece
        return data

    def _count(self) -> None:
        """Warnings since the last look, as far as FLOOD asks: of a flood the rest is left."""
        if self._log < 0:
            return
        for _ in range(MOST_RECORDS):
            try:
                level = os.read(self._log, RECORD_BYTES).partition(b",")[0]
            except BlockingIOError:
                return
            except BrokenPipeError:
                continue  # what came next is overwritten: on with what is there
            except OSError:
                break
            self._records += level.isdigit() and int(level) & 7 <= WARNING
        os.lseek(self._log, 0, os.SEEK_END)
