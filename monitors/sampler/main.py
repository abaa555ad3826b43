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

from contract.run_files import KERN_LOG, SAMPLER
from monitors.observe import become_observer, begin, cost
from monitors.outlet import BOUND, Outlet, open_all
from monitors.runner_channel import RunnerChannel, say
from monitors.sampler.counters import Counters
from monitors.sampler.kmsg import Kmsg
from monitors.ticker import Ticker

# Of a flood: so many records between two looks at the clock (a fraction of a ms), and so long
# before the log is looked at again.
SLICE = 64
PAUSE_S = 0.02
PATIENCE_S = 10.0
# A machine that spews out errors for hours must not fill the host's disk; <missed> is what a reader
# of kern.log knows.
LOG_BYTES = 64 << 20
CUT = b"<missed> (cut: kern.log has its %d MiB; what came later is counted, not kept)\n"


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
        self.ticker = Ticker(hz)
        self.runner = RunnerChannel()
        self._log_bytes = 0
        self._log_at = 0.0

    def rehearse(self) -> None:
        """Do all that is done under load once, without a trace: what was touched gets locked."""
        for _ in range(3):
            for _name, table in self.tables:
                self._row(table, time.monotonic(), 0.0)
        if self.kmsg:
            self._drain()
        cost()

    def run(self) -> None:
        """Until end of file on stdin, or SIGTERM."""
        poll = select.poll()
        poll.register(0, select.POLLIN)
        poll.register(self.runner.wake, select.POLLIN)
        log, watching = (self.kmsg.fd if self.kmsg else -1), False
        while not self.runner.ended:
            now = time.monotonic()
            deadline = min(self.ticker.deadline, now + 60.0)
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
            if now >= self.ticker.deadline:
                self._take(now, self.ticker.late(now))
                self.ticker.taken()
            for fd, _event in ready:
                if fd == 0:
                    self._listen()
                elif fd == log:
                    self._drain()

    def end(self) -> dict[str, object]:
        """One last sample, the rest of the log, everything written out; returns the facts."""
        now = time.monotonic()
        if self.ticker.number >= 0 and now >= self.ticker.t0:
            self._take(now, 0.0)
            self.ticker.samples += 1
        if self.kmsg:
            empty = False
            for _ in range(1000):
                if empty:
                    break
                empty = self._slice()
        unwritten = self.outlet.finish(PATIENCE_S)
        observer = cost()
        observer["worst_late_s"] = round(self.ticker.worst_late, 4)
        return {
            "observer": {"name": SAMPLER, **observer},
            **self.ticker.facts(),
            **self.outlet.facts(),
            "unwritten_bytes": unwritten,
            "log_records": self.kmsg.records if self.kmsg else 0,
            "log_missed": self.kmsg.missed if self.kmsg else 0,
            "log_cut_bytes": self._log_bytes - LOG_BYTES if self._log_bytes > LOG_BYTES else 0,
        }

    def _take(self, now: float, late: float) -> None:
        self.outlet.put([(name, self._row(table, now, late)) for name, table in self.tables])

    def _row(self, table: object, now: float, late: float) -> bytes:
        cells = table.cells()  # type: ignore[attr-defined]
        return b"%.3f\t%.3f\t%b\n" % (now - self.ticker.t0, late, b"\t".join(cells))

    def _listen(self) -> None:
        if (t0 := self.runner.read()) is not None:
            self.ticker.start(t0)
            begin()
            self.outlet.put([(name, table.header()) for name, table in self.tables])

    def _drain(self) -> None:
        """All that the ring holds, unless a sample falls due; then the rest after it."""
        while not self._slice():
            if time.monotonic() >= self.ticker.deadline:
                return
        self._log_at = time.monotonic() + PAUSE_S

    def _slice(self) -> bool:
        assert self.kmsg
        lines, empty = self.kmsg.read(SLICE)
        self._log_bytes += len(lines)
        if self._log_bytes > LOG_BYTES:
            if self._log_bytes - len(lines) <= LOG_BYTES:
                self.outlet.put([(KERN_LOG, CUT % (LOG_BYTES >> 20))])
            return empty
        # The log may take up half of the queue: it must not crowd out the samples.
        if lines and not self.outlet.put([(KERN_LOG, lines)], BOUND // 2):
            self.outlet.put([(KERN_LOG, b"<missed>\n")])
        return empty


def main() -> None:
    """`OUT HZ PRIORITY ROOT [PREFIX=DEVICE…]`; see monitors.launch."""
    folder, hz, priority, root = sys.argv[1:5]
    devices = dict(word.split("=", 1) for word in sys.argv[5:])
    sampler = Sampler(folder, devices, float(hz), root)
    _signal.signal(_signal.SIGTERM, sampler.runner.stop)
    # Ctrl-C goes to the whole group: the runner decides when sampling ends.
    _signal.signal(_signal.SIGINT, _signal.SIG_IGN)
    sys.setswitchinterval(0.0005)
    sampler.rehearse()
    facts = become_observer(int(priority)) if int(priority) else {"problems": ["not asked for"]}
    sampler.outlet.start(max(1, int(priority) - 1) if facts.get("fifo") else 0)
    say({"ready": os.getpid(), "not_available": sampler.not_available, **facts})
    sampler.run()
    say(sampler.end())
