# SPDX-License-Identifier: GPL-2.0-or-later
"""The third observer: what each stream's tasks spend their time on, and where they wait.

One process, started before the load by monitors.launch; it speaks and listens as the sampler does
(monitors.runner_channel), and says {"live_lock": why} when one is found (livelock.py). tasks.tsv:
delay accounting of each task of a stream, at every tick while the stream is silent, else once a
second, and once more when a silence of 1 s has ended, which the recorder tells through the beacon.
blocked.tsv: stacks of streams that are silent for 0.5 s, and of everything else in state D.
trace.tsv, allocfail.tsv, reclaim.tsv: sums that monitors.trace has made in the kernel. Imports next
to nothing, as all of it is locked in memory.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]
import os
import select
import sys
import time

from contract.run_files import ALLOCFAIL, BLOCKED, EVIDENCE_OBSERVER, RECLAIM, TASKS, TRACE
from monitors.beacon import WORDS, Beacon
from monitors.evidence import tables
from monitors.evidence.blocked_tasks import Sleepers, numbered, pace
from monitors.evidence.livelock import Watch
from monitors.evidence.tables import stamp
from monitors.evidence.tasks import Stat, StreamTasks, Task
from monitors.evidence.taskstats import Taskstats, TaskstatsError, delay_accounting
from monitors.observe import become_observer, begin, cost
from monitors.outlet import Outlet, open_all
from monitors.runner_channel import RunnerChannel, say
from monitors.ticker import Ticker

TYPE_CHECKING = False
if TYPE_CHECKING:
    from monitors.trace.trace import Trace

QUIET_NS = 300_000_000  # silent for so long: sampled at every tick from here on
STUCK_NS = 500_000_000  # from here on its stacks are looked at
STALL_NS = 1_000_000_000  # a silence of so long has a sample at its end
IDLE_S = 1.0  # between two samples of a stream that prints
EARLY_S = 0.1  # what is due within that is done now: everything is done at ticks
OTHERS = b"-"
PATIENCE_S = 10.0


class _Watched:
    """One stream: its tasks, the last line that was seen of it, and when it was looked at."""

    def __init__(self, name: bytes) -> None:
        self.name = name
        self.pid = 0
        self.heard_ns = 0
        self.tasks: StreamTasks | None = None
        self.sampled = 0.0
        self.looked = 0.0

    def follow(self, pid: int) -> None:
        """Another program has other tasks."""
        if self.tasks:
            self.tasks.close()
        self.pid = pid
        self.tasks = StreamTasks(pid) if pid else None
        self.sampled = self.looked = 0.0


class Evidence:
    """The loop, and what is done at each tick."""

    def __init__(
        self,
        folder: str,
        beacon: Beacon,
        devices: dict[str, str],
        hz: float,
        trace: bool,
        live_lock_s: float = 0.0,
    ) -> None:
        self.not_available: list[str] = []
        self.problems: list[str] = []
        self.gfp_flags: dict[str, int] = {}
        self._told = 0
        self.beacon = beacon
        self.streams = [_Watched(name.encode()) for name in beacon.names]
        self.taskstats: Taskstats | None = None
        try:
            self.taskstats = Taskstats()
        except TaskstatsError as error:
            self.not_available.append(str(error))
        self.trace = self._open_trace(devices) if trace else None
        self._stacks = tables.Stacks(self.trace) if self.trace else None
        names = [TASKS, BLOCKED, *([TRACE, ALLOCFAIL, RECLAIM] if self.trace else [])]
        self.outlet = Outlet(open_all(folder, names))
        self.ticker = Ticker(hz)
        self.runner = RunnerChannel()
        self.looks = 0
        self.watch = Watch(beacon, live_lock_s) if live_lock_s else None
        self._sleepers = Sleepers()
        self._kswapd = [Task(pid, pid) for pid in numbered(b"kswapd")]
        self._kswapd_at = self._failures_at = 0.0

    def _open_trace(self, devices: dict[str, str]) -> Trace | None:
        from monitors.trace.trace import Trace

        trace = Trace(devices)
        self.not_available += trace.not_available
        self.problems = trace.problems  # which grow
        self.gfp_flags = trace.gfp_flags
        return trace if trace.columns else None

    def facts(self) -> dict[str, object]:
        """What meta.json says of this kernel's evidence."""
        if self.taskstats:
            gone = {"compact", "wpcopy", "irq", "freepages", "thrashing"} - {*self.taskstats.names}
            self.not_available += [f"taskstats {name}" for name in sorted(gone)]
        try:
            with open("/proc/self/stack", "rb", buffering=0) as handle:
                handle.read(1)
        except OSError:
            self.not_available.append("/proc/PID/stack")
        self._told = len(self.problems)
        return {
            "taskstats_version": self.taskstats.version if self.taskstats else None,
            "delayacct": delay_accounting(),
            "gfp_flags": self.gfp_flags,
            "not_available": self.not_available,
        }

    def rehearse(self) -> None:
        """Do all that is done under load once, without a trace: what was touched gets locked."""
        own = _Watched(b"rehearsal")
        own.follow(os.getpid())
        own.heard_ns = time.monotonic_ns()
        assert own.tasks
        for _ in range(3):
            now = time.monotonic()
            self._streams_seen()
            own.tasks.refresh()
            mark = stamp(0.0, 0.0)
            found, _rows = self._sampled([own, None], mark)
            self._look(own, found, now, mark)
            self._others(now, mark)
            if self.trace:
                tables.trace_row(mark, self.trace)
                self._failure_rows()
                tables.reclaim_rows(self.trace)
        if self.watch:
            self.watch.rehearse()
        own.follow(0)
        self.looks = 0
        self._sleepers.close()
        self._sleepers = Sleepers()
        cost()

    def run(self) -> None:
        """Until end of file on stdin, or SIGTERM."""
        poll = select.poll()
        poll.register(0, select.POLLIN)
        poll.register(self.runner.wake, select.POLLIN)
        poll.register(self.beacon.fds[1], select.POLLIN)
        while not self.runner.ended:
            now = time.monotonic()
            deadline = min(self.ticker.deadline, now + 60.0)
            ready = poll.poll(max(0.0, deadline - now) * 1000.0)
            for fd, _event in ready:
                if fd == 0:
                    self._listen()
                elif fd == self.beacon.fds[1]:
                    self._silences_ended()
            now = time.monotonic()  # not before: no row is older than the one above it
            if now >= self.ticker.deadline:
                self._tick(now, self.ticker.late(now))
                self.ticker.taken()

    def end(self) -> dict[str, object]:
        """One last sample, the sums, everything written out; returns the facts."""
        now = time.monotonic()
        if self.ticker.number >= 0 and now >= self.ticker.t0:
            watched = [stream for stream in self.streams if stream.tasks]
            mark = stamp(now - self.ticker.t0, 0.0)
            self.outlet.put([(TASKS, self._sampled([*watched, None], mark)[1])])
            if self.trace:
                self.outlet.put([(TRACE, tables.trace_row(mark, self.trace))])
                while rows := self._failure_rows():
                    self.outlet.put([(ALLOCFAIL, rows)])
                self.outlet.put([(RECLAIM, tables.reclaim_rows(self.trace))])
        unwritten = self.outlet.finish(PATIENCE_S)
        observer = cost()
        observer["worst_late_s"] = round(self.ticker.worst_late, 4)
        if self.trace:
            self.trace.close()
        return {
            "observer": {"name": EVIDENCE_OBSERVER, **observer},
            **self.ticker.facts(),
            "looks": self.looks,
            **self.outlet.facts(),
            "unwritten_bytes": unwritten,
            "problems": self.problems[self._told :],
        }

    def _listen(self) -> None:
        if (t0 := self.runner.read()) is None:
            return
        self.ticker.start(t0)
        begin()
        if self.trace:
            self.trace.forget()
        delays = self.taskstats.names if self.taskstats else []
        self.outlet.put(tables.headers(delays, self.trace))

    def _tick(self, now: float, late: float) -> None:
        now_ns = time.monotonic_ns()
        mark = stamp(now - self.ticker.t0, late)
        pieces = [(TRACE, tables.trace_row(mark, self.trace))] if self.trace else []
        ended = self._streams_seen()
        due: list[_Watched | None] = []  # None: kswapd
        stuck: list[_Watched] = []
        quiet = False
        for stream in self.streams:
            if not stream.tasks:
                continue
            silent_ns = now_ns - stream.heard_ns
            if now - stream.sampled >= IDLE_S - EARLY_S:
                stream.sampled = now
                stream.tasks.refresh()
                due.append(stream)
            elif silent_ns >= QUIET_NS or stream in ended:
                due.append(stream)
            quiet = quiet or silent_ns >= QUIET_NS
            if silent_ns >= STUCK_NS:
                stuck.append(stream)
        if quiet or now - self._kswapd_at >= IDLE_S - EARLY_S:
            self._kswapd_at = now
            due.append(None)
        if due:
            stats, rows = self._sampled(due, mark)
            pieces.append((TASKS, rows))
            for stream in stuck:
                silent_s = (now_ns - stream.heard_ns) / 1e9
                if now - stream.looked >= pace(silent_s) - EARLY_S:
                    pieces.append((BLOCKED, self._look(stream, stats, now, mark)))
        if stuck:
            pieces.append((BLOCKED, self._others(now, mark)))
        if self.trace and now - self._failures_at >= IDLE_S - EARLY_S:
            self._failures_at = now
            pieces.append((ALLOCFAIL, self._failure_rows()))
        self.outlet.put(pieces)
        if self.watch and (why := self.watch.look(now)):
            say({"live_lock": why})

    def _failure_rows(self) -> bytes:
        """allocfail.tsv's rows of what failed since the last call."""
        if not (self.trace and self._stacks):
            return b""
        return tables.failure_rows(self.trace, self._stacks, self.ticker.t0)

    def _streams_seen(self) -> list[_Watched]:
        """Take what the beacon says now; the streams whose long silence has ended since."""
        ended = []
        words = self.beacon.state()
        for slot, stream in enumerate(self.streams):
            pid, last_ns = words[WORDS * slot], words[WORDS * slot + 1]
            if pid != stream.pid:
                stream.follow(pid)
            elif last_ns - stream.heard_ns >= STALL_NS and pid:
                ended.append(stream)
            stream.heard_ns = last_ns
        return ended

    def _silences_ended(self) -> None:
        self.beacon.heard()
        if (ended := self._streams_seen()) and self.ticker.number >= 0:
            mark = stamp(time.monotonic() - self.ticker.t0, 0.0)
            self.outlet.put([(TASKS, self._sampled([*ended], mark)[1])])

    def _sampled(
        self, streams: list[_Watched | None], mark: bytes
    ) -> tuple[dict[int, Stat], bytes]:
        """What /proc says of these streams' tasks by their pids, and tasks.tsv's rows of them."""
        todo: list[tuple[bytes, Task]] = []
        stats: dict[int, Stat] = {}
        for stream in streams:
            if stream is None:
                todo += [(OTHERS, task) for task in self._kswapd]
            elif stream.tasks:
                todo += [(stream.name, task) for task in stream.tasks.tasks]
        accounts: list[bytes | None] = [b""] * len(todo)
        unknown = b""
        if self.taskstats:
            accounts = self.taskstats.read([task.pid for _name, task in todo])
            unknown = b"\t" * len(self.taskstats.names)
        rows = []
        for (name, task), account in zip(todo, accounts, strict=True):
            try:
                stat = stats[task.pid] = task.stat()
            except OSError:
                continue  # gone: refresh() forgets it
            rows.append(tables.task_row(mark, name, task, stat, account or unknown))
        return stats, b"".join(rows)

    def _look(self, stream: _Watched, stats: dict[int, Stat], now: float, mark: bytes) -> bytes:
        """blocked.tsv's rows of a stream whose tasks have just been sampled."""
        assert stream.tasks
        stream.looked = now
        self.looks += 1
        silent = b"%.3f" % (now - stream.heard_ns / 1e9)
        return b"".join(
            tables.blocked_row(mark, stream.name, silent, task, stats[task.pid])
            for task in stream.tasks.tasks
            if task.pid in stats
        )

    def _others(self, now: float, mark: bytes) -> bytes:
        """blocked.tsv's rows of everything else in state D."""
        if not (found := self._sleepers.look(now)):
            return b""
        rows = []
        own = {task.pid for stream in self.streams if stream.tasks for task in stream.tasks.tasks}
        for pid in found:
            if pid not in own:
                try:
                    task = Task(pid, pid)
                except OSError:
                    continue
                try:
                    stat = task.stat()
                    if stat.state == b"D":
                        rows.append(tables.blocked_row(mark, OTHERS, b"", task, stat))
                except OSError:
                    pass
                task.close()
        return b"".join(rows)


def main() -> None:
    """`OUT HZ PRIORITY TRACE LIVE_LOCK_S MEMORY_FD EVENT_FD STREAMS NAME… [PREFIX=DEVICE…]`."""
    folder, hz, priority, trace, live_lock_s, memory, event, count = sys.argv[1:9]
    names = sys.argv[9 : 9 + int(count)]
    devices = dict(word.split("=", 1) for word in sys.argv[9 + int(count) :])
    beacon = Beacon(names, (int(memory), int(event)))
    evidence = Evidence(folder, beacon, devices, float(hz), trace == "1", float(live_lock_s))
    _signal.signal(_signal.SIGTERM, evidence.runner.stop)
    # Ctrl-C goes to the whole group: the runner decides when sampling ends.
    _signal.signal(_signal.SIGINT, _signal.SIG_IGN)
    sys.setswitchinterval(0.0005)
    evidence.rehearse()
    found = evidence.facts()
    locked = become_observer(int(priority)) if int(priority) else {"problems": ["not asked for"]}
    evidence.outlet.start(max(1, int(priority) - 1) if locked.get("fifo") else 0)
    problems = locked.pop("problems")
    assert isinstance(problems, list)
    say({"ready": os.getpid(), "problems": problems + evidence.problems, **found, **locked})
    evidence.run()
    say(evidence.end())
