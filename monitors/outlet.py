# SPDX-License-Identifier: GPL-2.0-or-later
"""Writing that never makes an observer wait: a bounded queue, and one thread that empties it.

A write to a virtio-serial port allocates memory: under pressure it can take hundreds of ms in
direct reclaim. The thread wakes on its own, a few times a second, and writes what has come for each
file at once: a wake-up for each line would cost more than all the rest of an observer.
"""

from __future__ import annotations

import _collections  # type: ignore[import-not-found]
import _thread
import errno
import os
import time

from monitors.observe import raise_thread

BOUND = 4 << 20  # bytes kept for outputs that take nothing
PIECE = 4096  # a port copies each write into one allocation, and large ones run out first
CLOSE_S = 2.0  # how long an output that takes nothing is still tried at the end
RETRY_S = 0.25
BATCH_S = 0.4


class Outlet:
    """Open files by name. put() belongs to one thread, the observer's."""

    def __init__(self, fds: dict[str, int], batch_s: float = BATCH_S) -> None:
        self._fds: dict[str, int | None] = dict(fds)
        # Its append and popleft are atomic: there is no lock to wait for.
        self._queue: _collections.deque[tuple[str, bytes]] = _collections.deque()
        self._pending: dict[str, bytes] = {}
        self._batch_s = batch_s
        self._put = self._done = 0  # each has one writer, so there is no lock
        self._ending = False
        self._wake = _thread.allocate_lock()
        self._wake.acquire()
        self._ended = _thread.allocate_lock()
        self.failing = False  # an output took nothing at the last attempt
        self.gone = False  # an output's reader went away (EPIPE)
        self.dropped: dict[str, list[int]] = {}  # name -> [lines, bytes] that did not fit
        self.errors: dict[str, str] = {}
        self.slowest_s = 0.0

    def start(self, priority: int) -> None:
        """Start the thread, at SCHED_FIFO `priority` (0: as an ordinary one).

        An ordinary thread could be preempted while it holds the interpreter's lock, and the
        observer would wait for it behind the whole load.
        """
        self._ended.acquire()
        _thread.start_new_thread(self._work, (priority,))

    @property
    def waiting(self) -> int:
        """Bytes that are not written yet."""
        return self._put - self._done

    def put(self, pieces: list[tuple[str, bytes]], limit: int = 0) -> bool:
        """Queue (file, whole lines). False, and counted as dropped, if too much is waiting.

        limit: bytes that may wait, BOUND if 0.
        """
        size = 0
        for _name, data in pieces:
            size += len(data)
        if self._put - self._done + size > (limit or BOUND):
            for name, data in pieces:
                lost = self.dropped.setdefault(name, [0, 0])
                lost[0] += data.count(b"\n")
                lost[1] += len(data)
            return False
        self._put += size
        self._queue.extend(pieces)
        return True

    def finish(self, patience_s: float) -> int:
        """Write what is queued; returns how many bytes were not written, and are dropped."""
        self._ending = True
        self._wake.release()
        self._ended.acquire(timeout=patience_s)
        left = self._put - self._done
        # The thread may still wait in a write: what is queued behind that is lost, too.
        for name, data in [*self._pending.items(), *self._queue]:
            if data:
                lost = self.dropped.setdefault(name, [0, 0])
                lost[0] += data.count(b"\n")
                lost[1] += len(data)
        return left

    def facts(self) -> dict[str, object]:
        """For the `observer` event."""
        return {
            "slowest_write_s": round(self.slowest_s, 4),
            "dropped": self.dropped,
            "write_errors": self.errors,
        }

    def _work(self, priority: int) -> None:
        if priority:
            raise_thread(priority, [])
        while not self._ending:
            self._wake.acquire(timeout=RETRY_S if self.failing else self._batch_s)
            self._round()
        self._round()
        give_up = time.monotonic() + CLOSE_S
        while self.failing and time.monotonic() < give_up:
            time.sleep(RETRY_S)
            self._round()
        self._ended.release()

    def _round(self) -> None:
        parts: dict[str, list[bytes]] = {}
        while self._queue:
            name, data = self._queue.popleft()
            parts.setdefault(name, []).append(data)
        for name, found in parts.items():
            self._pending[name] = self._pending.get(name, b"") + b"".join(found)
        failing = False
        for name, data in self._pending.items():
            if data:
                began = time.monotonic()
                left = self._write(name, data)
                self._pending[name] = left
                self._done += len(data) - len(left)
                failing = failing or bool(left)
                self.slowest_s = max(self.slowest_s, time.monotonic() - began)
        self.failing = failing

    def _write(self, name: str, data: bytes) -> bytes:
        # Returns what could not be written now.
        fd = self._fds[name]
        view = memoryview(data)
        sent = 0
        try:
            while fd is not None and sent < len(data):
                sent += os.write(fd, view[sent : sent + PIECE])
        except OSError as error:
            self.errors[name] = os.strerror(error.errno or 0)
            if error.errno != errno.EPIPE:
                return data[sent:]
            self.gone = True
            self._fds[name] = None
        return b""


def open_all(folder: str, names: list[str]) -> dict[str, int]:
    """Open files for appending below folder; each may be a link to a port of the guest."""
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
    return {name: os.open(f"{folder}/{name}", flags, 0o644) for name in names}
