# SPDX-License-Identifier: GPL-2.0-or-later
"""Stamps the lines of several programs from one process, in a machine that swaps itself to death.

The stamp is CLOCK_MONOTONIC right after the read returned; monitors.outlet writes the logs. Imports
next to nothing, as all of it is locked in memory for the whole run (monitors.recorder.main).
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]
import errno
import os
import select
import time

from monitors.beacon import Beacon
from monitors.lines import LineLog
from monitors.outlet import BOUND, Outlet
from monitors.recorder.child import Child, PipeChild, StartError, Stream

READ = 16384  # bytes asked for by one read
POLL_S = 0.25  # should_stop is asked at least this often
TICK_S = 1.0  # between two looks for programs that ended without closing their output
EXIT_POLL_S = 0.01  # the same while a program has closed its output and has not ended yet
GRACE_S = 5.0  # between SIGTERM and SIGKILL
KILL_S = 30.0  # how long a killed program may take to die: it may be waiting for a disk
DRAIN_S = 5.0  # how long output may still come after its program has ended
PATIENCE_S = 1.0  # how long reading waits for an output that is slow but takes data

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


class _Source:
    def __init__(self, name: str, log: LineLog, fd: int, child: Child | None) -> None:
        self.name = name
        self.log = log
        self.fd = fd
        self.child = child
        self.status: int | None = None
        self.exited_at: float | None = None
        self.closed_ms: int | None = None
        self.slot = -1  # its place in the beacon
        self.last = b""  # the log's lines of the last read that had any


class Recorder:
    """Runs programs and puts their stamped lines into an outlet, each under its stream's name.

    beacon is told when each of its streams begins, prints and ends.
    on_event(name, facts) is called for `stream-start`, `stream-end` and `output-lost`. Without a
    program in a stream its lines are our own standard input's.
    """

    def __init__(
        self,
        streams: list[Stream],
        outlet: Outlet,
        on_event: Callable[[str, dict[str, object]], None],
        beacon: Beacon | None = None,
    ) -> None:
        self._streams = streams
        self._beacon = beacon
        self._outlet = outlet
        self._on_event = on_event
        self._epoll = select.epoll()
        self._children: list[Child | None] = []
        self._sources: dict[str, _Source] = {}
        self._by_fd: dict[int, _Source] = {}
        self._always: list[_Source] = []  # plain files, which epoll refuses
        self._ended: set[str] = set()
        self._next_tick = 0.0
        self._stopped = False
        self._changed = True  # a stream ended since that was last looked at

    def prepare(self) -> None:
        """Start every program, in order, and wait until those that wait are ready.

        StartError, with nothing left running, if one cannot be started or does not become ready.
        """
        try:
            for stream in self._streams:
                self._children.append(_spawn(stream))
            for stream, child in zip(self._streams, self._children, strict=True):
                if child is not None and stream.waits:
                    child.wait_ready(stream.name)
        except StartError:
            self.abandon()
            raise

    def abandon(self) -> None:
        """End what prepare() started, unrecorded."""
        for child in self._children:
            if child is not None:
                child.kill()

    def start(self) -> float:
        """Let all streams begin; elapsed counts from the value returned (monotonic s).

        prepare() comes first, by itself if it was not called.
        """
        if not self._children:
            self.prepare()
        start_ns = time.monotonic_ns()
        for stream, child in zip(self._streams, self._children, strict=True):
            self._open(stream, child, LineLog(start_ns))
            if self._beacon and child is not None and stream.name in self._beacon.names:
                slot = self._beacon.names.index(stream.name)
                self._sources[stream.name].slot = slot
                self._beacon.began(slot, child.pid, start_ns)
        for source in self._sources.values():
            if source.child is not None:
                self._on_event("stream-start", {"stream": source.name, "pid": source.child.pid})
        return start_ns / 1e9

    def run(self, until: set[str], deadline: float | None, should_stop: Callable[[], bool]) -> str:
        """Record until all streams named have ended ("done"), deadline (monotonic s), or a wish.

        The others are "deadline" and "stopped". May be called again.
        """
        if missing := until - self._sources.keys():
            raise ValueError(f"no such stream: {', '.join(sorted(missing))}")
        # A line costs one wake-up and as little else as can be: the rest is looked at by the clock.
        look = 0.0
        while True:
            self._turn(POLL_S)
            if (now := time.monotonic()) < look and not self._changed:
                continue
            look = now + POLL_S
            self._changed = False
            if until <= self._ended:
                return "done"
            if should_stop():
                return "stopped"
            if deadline is not None:
                if now >= deadline:
                    return "deadline"
                look = min(look, deadline)

    def stop(self) -> None:
        """Log the open gaps of this moment, then end what still runs, with its children.

        What a program says because it was asked to end is no longer a part of its stream.
        """
        if self._stopped:
            return
        self._stopped = True
        now_ns = time.monotonic_ns()
        for source in self._sources.values():
            self._log_end(source, now_ns)
        for number, patience in ((_signal.SIGTERM, GRACE_S), (_signal.SIGKILL, KILL_S)):
            give_up = time.monotonic() + patience
            living = [s for s in self._sources.values() if s.name not in self._ended]
            for source in living:
                if source.child is None:
                    self._close(source, time.monotonic_ns())
                elif source.status is None:
                    source.child.signal(number)
                    source.child.signal(_signal.SIGCONT)
            while len(self._ended) < len(self._sources) and time.monotonic() < give_up:
                self._turn(EXIT_POLL_S)
        for source in self._sources.values():
            if source.name not in self._ended:
                self._close(source, time.monotonic_ns())
                self._end(source)
        self._epoll.close()
        self._outlet.finish(GRACE_S)
        for name, (lines, size) in self._outlet.dropped.items():
            self._on_event("output-lost", {"stream": name, "lines": lines, "bytes": size})

    def status(self, name: str) -> int | None:
        """Exit status of a stream's program (negative: the signal); None while it has none."""
        return self._sources[name].status

    def last_line(self, name: str) -> str:
        """The last whole line that a stream's program printed, as it is in the log, or nothing."""
        line = self._sources[name].last.decode().rstrip("\n").split("\n")[-1]
        return line.split(" ", 2)[2] if line else ""

    def _open(self, stream: Stream, child: Child | None, log: LineLog) -> None:
        source = _Source(stream.name, log, child.fd if child else os.dup(0), child)
        if child is not None and stream.waits:
            child.go()
        self._sources[stream.name] = source
        self._by_fd[source.fd] = source
        try:
            self._epoll.register(source.fd, select.EPOLLIN)
        except PermissionError:
            self._always.append(source)

    def _turn(self, timeout: float) -> None:
        by_fd = self._by_fd
        for fd, _ in self._epoll.poll(0 if self._always else timeout, 16):
            self._read(by_fd[fd])
        for source in list(self._always):
            self._read(source)
        now = time.monotonic()
        if now >= self._next_tick:
            self._tick(now)

    def _read(self, source: _Source) -> None:
        try:
            chunk = os.read(source.fd, READ)
        except OSError as error:
            # What a pty says when nobody has its other end open any more.
            if error.errno != errno.EIO:
                raise
            chunk = b""
        now_ns = time.monotonic_ns()
        if not chunk:
            self._close(source, now_ns)
            self._next_tick = 0.0
        elif source.closed_ms is None and (text := source.log.feed(chunk, now_ns)):
            source.last = text
            if source.slot >= 0:
                assert self._beacon
                self._beacon.said(source.slot, now_ns, source.log.lines)
            self._put(source, text)

    def _put(self, source: _Source, text: bytes) -> None:
        outlet = self._outlet
        if outlet.waiting > BOUND // 2:
            give_up = time.monotonic() + PATIENCE_S
            while outlet.waiting > BOUND // 2 and not outlet.failing:
                if time.monotonic() > give_up:
                    break
                time.sleep(0.002)
        outlet.put([(source.name, text)])

    def _tick(self, now: float) -> None:
        self._next_tick = now + TICK_S
        for source in self._sources.values():
            if source.name in self._ended:
                continue
            if source.child is not None and source.status is None:
                self._reap(source, now)
            late = source.exited_at is not None and now > source.exited_at + DRAIN_S
            if late and source.fd in self._by_fd:
                self._close(source, time.monotonic_ns())
            if source.closed_ms is not None:
                if source.child is None or source.status is not None:
                    self._end(source)
                else:
                    self._next_tick = now + EXIT_POLL_S

    def _reap(self, source: _Source, now: float) -> None:
        assert source.child is not None
        # Left unreaped at first: until then nobody else can have its number, nor its group's.
        if os.waitid(os.P_PID, source.child.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
            return
        source.child.signal(_signal.SIGKILL)
        source.status = os.waitstatus_to_exitcode(os.waitpid(source.child.pid, 0)[1])
        source.exited_at = now

    def _log_end(self, source: _Source, now_ns: int) -> None:
        if source.closed_ms is None:
            source.closed_ms = source.log.ms(now_ns)
            if self._beacon and source.slot >= 0:
                self._beacon.ended(source.slot)
            self._put(source, source.log.end(now_ns))

    def _close(self, source: _Source, now_ns: int) -> None:
        self._log_end(source, now_ns)
        if self._by_fd.pop(source.fd, None) is None:
            return
        if source in self._always:
            self._always.remove(source)
        else:
            self._epoll.unregister(source.fd)
        if source.child is None:
            os.close(source.fd)
            self._ended.add(source.name)
            self._changed = True
        else:
            source.child.close()

    def _end(self, source: _Source) -> None:
        self._close(source, time.monotonic_ns())
        self._ended.add(source.name)
        self._changed = True
        if source.child is not None and source.closed_ms is not None:
            facts: dict[str, object] = {"stream": source.name}
            facts["elapsed"] = source.closed_ms / 1000
            facts["status"] = source.status
            facts["lines"] = source.log.lines
            self._on_event("stream-end", facts)


def _spawn(stream: Stream) -> Child | None:
    if not stream.argv:
        return None
    if stream.pty:
        from monitors.recorder.terminal_child import TerminalChild

        return TerminalChild(stream)
    return PipeChild(stream)
