# SPDX-License-Identifier: GPL-2.0-or-later
"""Samples the kernel's counters on absolute deadlines, and carries its log out, under any load.

One process, started before the load by monitors.launch. It speaks JSON lines on stdout:
    {"ready": pid, "not_available": […], "problems": […], …}   once it is locked in memory
    {"observer": {…}, "samples": N, …}                         when it ends
and listens on stdin: `t0 SECONDS` (CLOCK_MONOTONIC) starts sampling at t0 + k/hz; end of file or
SIGTERM ends it with one last sample. kern.log is written from the start.
Overhead, natively: see benchmarks/observer; imports next to nothing, as all of it is locked.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]
import os
import select
import sys
import time

from monitors.counters import Counters
from monitors.kmsg import Kmsg
from monitors.observe import become_observer, begin, cost
from monitors.outlet import BOUND, Outlet, open_all
from monitors.plain_json import to_json

KERN_LOG = "kern.log"
# Of a flood: so many records between two looks at the clock (a fraction of a ms), and so long
# before the log is looked at again.
SLICE = 64
PAUSE_S = 0.02
PATIENCE_S = 10.0


class Sampler:
    """The loop: deadlines, stdin, the kernel's log."""

    def __init__(self, folder: str, devices: dict[str, str], hz: float, root: str = "") -> None:
        self.counters = Counters(devices, root)
        self.not_available = list(self.counters.not_available)
        self.kmsg: Kmsg | None = None
        try:
            self.kmsg = Kmsg(f"{root}/dev/kmsg")
        except OSError:
            self.not_available.append("/dev/kmsg")
        self.tables = [(f"{table.name}.tsv", table) for table in self.counters.tables]
        self.outlet = Outlet(open_all(folder, [name for name, _table in self.tables] + [KERN_LOG]))
        self.hz = hz
        self.t0 = 0.0
        self.next = -1
        self.samples = self.missed = 0
        self.worst_late = self.sum_late = 0.0
        self.running = True
        self._log_at = 0.0
        self._commands = b""
        self._wake, self._woken = os.pipe()

    def rehearse(self) -> None:
        """Do all that is done under load once, without a trace: what was touched gets locked."""
        for _ in range(3):
            for _name, table in self.tables:
                self._row(table, time.monotonic(), 0.0)
        if self.kmsg:
            self._drain()
        cost()

    def run(self) -> None:
        """Until end of file on stdin, or stop()."""
        poll = select.poll()
        poll.register(0, select.POLLIN)
        poll.register(self._wake, select.POLLIN)
        log, watching = (self.kmsg.fd if self.kmsg else -1), False
        while self.running:
            now = time.monotonic()
            deadline = self.t0 + self.next / self.hz if self.next >= 0 else now + 60.0
            if log >= 0 and now < self._log_at:
                deadline = min(deadline, self._log_at)
                if watching:
                    poll.unregister(log)
                    watching = False
            elif log >= 0 and not watching:
                poll.register(log, select.POLLIN)
                watching = True
            # poll rounds up to whole ms; select does not, and costs twice as much of the CPU.
            ready = poll.poll(max(0.0, deadline - now) * 1000.0)
            now = time.monotonic()
            if self.next >= 0 and now >= self.t0 + self.next / self.hz:
                self._sample(now)
            for fd, _event in ready:
                if fd == 0:
                    self._listen()
                elif fd == log:
                    self._drain()
                else:
                    self.running = False

    def stop(self, *_: object) -> None:
        """End the loop; also the handler of SIGTERM."""
        os.write(self._woken, b"x")

    def end(self) -> dict[str, object]:
        """One last sample, the rest of the log, everything written out; returns the facts."""
        now = time.monotonic()
        if self.next >= 0 and now >= self.t0:
            self._take(now, 0.0)
        if self.kmsg:
            empty = False
            for _ in range(1000):
                if empty:
                    break
                empty = self._slice()
        unwritten = self.outlet.finish(PATIENCE_S)
        observer = cost()
        observer["worst_late_s"] = round(self.worst_late, 4)
        return {
            "observer": {"name": "sampler", **observer},
            "samples": self.samples,
            "missed": self.missed,
            "mean_late_s": round(self.sum_late / max(self.samples, 1), 5),
            "slowest_write_s": round(self.outlet.slowest_s, 4),
            "dropped": self.outlet.dropped,
            "write_errors": self.outlet.errors,
            "unwritten_bytes": unwritten,
            "log_records": self.kmsg.records if self.kmsg else 0,
            "log_missed": self.kmsg.missed if self.kmsg else 0,
        }

    def _sample(self, now: float) -> None:
        late = now - (self.t0 + self.next / self.hz)
        self.worst_late = max(self.worst_late, late)
        self.sum_late += late
        self._take(now, late)
        passed = int((time.monotonic() - self.t0) * self.hz)
        self.missed += max(0, passed - self.next)
        self.next = max(passed, self.next) + 1

    def _take(self, now: float, late: float) -> None:
        self.outlet.put([(name, self._row(table, now, late)) for name, table in self.tables])
        self.samples += 1

    def _row(self, table: object, now: float, late: float) -> bytes:
        cells = table.cells()  # type: ignore[attr-defined]
        return b"%.3f\t%.3f\t%b\n" % (now - self.t0, late, b"\t".join(cells))

    def _listen(self) -> None:
        data = os.read(0, 4096)
        if not data:
            self.running = False
        self._commands += data
        *lines, self._commands = self._commands.split(b"\n")
        for line in lines:
            words = line.split()
            if len(words) == 2 and words[0] == b"t0":
                self.t0, self.next = float(words[1]), 0
                begin()
                self.outlet.put([(name, table.header()) for name, table in self.tables])

    def _drain(self) -> None:
        """All that the ring holds, unless a sample falls due; then the rest after it."""
        until = self.t0 + self.next / self.hz if self.next >= 0 else float("inf")
        while not self._slice():
            if time.monotonic() >= until:
                return
        self._log_at = time.monotonic() + PAUSE_S

    def _slice(self) -> bool:
        assert self.kmsg
        lines, empty = self.kmsg.read(SLICE)
        # The log may take up half of the queue: it must not crowd out the samples.
        if lines and not self.outlet.put([(KERN_LOG, lines)], BOUND // 2):
            self.outlet.put([(KERN_LOG, b"<missed>\n")])
        return empty


def say(facts: dict[str, object]) -> None:
    """One JSON line on stdout; a parent that is gone does not matter."""
    try:  # noqa: SIM105 (contextlib is 0.3 MiB of locked memory)
        os.write(1, to_json(facts).encode() + b"\n")
    except OSError:
        pass


def main() -> None:
    """`OUT HZ PRIORITY ROOT [PREFIX=DEVICE…]`; see monitors.launch."""
    folder, hz, priority, root = sys.argv[1:5]
    devices = dict(word.split("=", 1) for word in sys.argv[5:])
    sampler = Sampler(folder, devices, float(hz), root)
    _signal.signal(_signal.SIGTERM, sampler.stop)
    # Ctrl-C goes to the whole group: the runner decides when sampling ends.
    _signal.signal(_signal.SIGINT, _signal.SIG_IGN)
    sys.setswitchinterval(0.0005)
    sampler.rehearse()
    facts = become_observer(int(priority)) if int(priority) else {"problems": ["not asked for"]}
    sampler.outlet.start(max(1, int(priority) - 1) if facts.get("fifo") else 0)
    say({"ready": os.getpid(), "not_available": sampler.not_available, **facts})
    sampler.run()
    say(sampler.end())
