# SPDX-License-Identifier: GPL-2.0-or-later
"""The runner's side of the observers: start them before the load, wait, end them."""

import contextlib
import errno
import functools
import json
import os
import select
import subprocess
import time
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any

from contract.run_files import EVIDENCE_OBSERVER, KEYS, RECORDER, SAMPLER
from errors import UserError
from monitors.beacon import Beacon
from monitors.streams import KeyProgram, Stream

READY_S = 120.0  # for a program to start up: an emulated machine may take its time
NAME = "observers"  # of the processes, wherever their program is
MFD_EXEC = 0x10  # linux/memfd.h; not in the os module before 3.12
LIVE_LOCK = "live_lock"  # what the evidence's line says then
# SCHED_FIFO: whoever stamps lines goes first, whoever looks longest goes last. Of equal ones none
# would give way, and a line would be as late as the longest look at all tasks.
RECORDER_PRIORITY, SAMPLER_PRIORITY, EVIDENCE_PRIORITY = 24, 22, 20
KEYS_PRIORITY = 26  # stamps echoes, some a minute


@functools.cache
def in_memory(program: Path) -> Path:
    """A copy of the program in anonymous memory, which can be executed as long as we live.

    A file's page cache may be of large folios (ext4: since 6.16), and of these only what lies whole
    in a locked mapping is locked (1acbc3f93614, 6.7): on 7.3 the observers' code was read again
    from the disk. The program itself, where memory may not be had or executed (vm.memfd_noexec).
    """
    try:
        with open(_executable_memory(program.name), "wb") as memory:
            memory.write(program.read_bytes())
            memory.flush()
            # What is open for writing cannot be executed.
            readable = os.open(f"/proc/self/fd/{memory.fileno()}", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return program
    return Path(f"/proc/{os.getpid()}/fd/{readable}")


def _executable_memory(name: str) -> int:
    try:
        return os.memfd_create(name, os.MFD_CLOEXEC | MFD_EXEC)
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
        return os.memfd_create(name)  # a kernel before 6.3, to which it need not be said


class Observer:
    """An observer's process, as its runner sees it."""

    def __init__(
        self, program: Path, name: str, words: list[str], fds: tuple[int, ...] = ()
    ) -> None:
        """program: setup.observers'; fds stay open in it."""
        try:
            self._child = subprocess.Popen(
                [NAME, name, *words],
                executable=program,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                cwd="/",
                env={"PATH": "/usr/bin:/bin"},
                pass_fds=fds,
            )
        except OSError as error:
            raise UserError(f"{program}: {error.strerror}") from None
        self._heard = b""
        self.pid = self._child.pid

    def fileno(self) -> int:
        """Where it speaks."""
        assert self._child.stdout
        return self._child.stdout.fileno()

    def alive(self) -> bool:
        """False once it has died."""
        return self._child.poll() is None

    def tell(self, data: bytes) -> None:
        assert self._child.stdin
        self._child.stdin.write(data)
        self._child.stdin.flush()

    def finish(self, patience_s: float) -> dict[str, Any] | None:
        # Closing its input asks it to end; its last line, or None, and then it is gone.
        assert self._child.stdin and self._child.stdout
        with contextlib.suppress(OSError):
            self._child.stdin.close()
        facts = self.line(patience_s)
        while facts is not None and "observer" not in facts:  # said too late to matter
            facts = self.line(patience_s)
        try:
            self._child.wait(5.0 if facts else 0.1)
        except subprocess.TimeoutExpired:
            self._child.kill()
            self._child.wait()
        self._child.stdout.close()
        return facts

    def line(self, patience_s: float | None) -> dict[str, Any] | None:
        assert self._child.stdout
        fd = self._child.stdout.fileno()
        until = None if patience_s is None else time.monotonic() + patience_s
        while b"\n" not in self._heard:
            left = None if until is None else until - time.monotonic()
            if left is not None and left <= 0:
                return None
            if not select.select([fd], [], [], left)[0]:
                return None
            data = os.read(fd, 65536)
            if not data:
                return None
            self._heard += data
        line, _, self._heard = self._heard.partition(b"\n")
        facts = json.loads(line)
        assert isinstance(facts, dict)
        return facts


class SamplingObserver(Observer):
    """A started observer that samples by the clock. `not_available`, `problems`: known at once."""

    def __init__(
        self,
        program: Path,
        name: str,
        words: list[str],
        patience_s: float,
        fds: tuple[int, ...] = (),
    ) -> None:
        """Return when it is locked in memory and ready, else UserError."""
        super().__init__(program, name, words, fds)
        facts = self.line(patience_s)
        if not facts or "ready" not in facts:
            self._child.kill()
            self._child.wait()
            raise UserError(f"the {name} did not start (status {self._child.returncode})")
        self.facts = facts
        self.not_available: list[str] = facts["not_available"]
        self.problems: list[str] = facts["problems"]

    def start(self, t0: float) -> None:
        """Samples are taken at t0 + k/hz, t0 in seconds of CLOCK_MONOTONIC (it may lie ahead)."""
        self.tell(f"t0 {t0!r}\n".encode())

    def stop(self, patience_s: float = 30.0) -> dict[str, Any] | None:
        """One last sample, then the end: its facts, with `observer` for that event.

        None if it died, or said nothing within patience_s and was killed.
        """
        return self.finish(patience_s)


def _counted(words: Sequence[str]) -> list[str]:
    return [str(len(words)), *words]


def _pairs(devices: dict[str, str]) -> list[str]:
    return [f"{prefix}={name}" for prefix, name in devices.items()]


class SamplerProcess(SamplingObserver):
    """The sampler of counters, and of the kernel's log."""

    def __init__(
        self,
        program: Path,
        out: Path,
        devices: dict[str, str],
        *,
        slabs: Sequence[str] = (),
        hz: float = 4.0,
        priority: int = SAMPLER_PRIORITY,
        root: str = "",
        patience_s: float = 60.0,
    ) -> None:
        """devices: column prefix -> kernel's block name (`{"disk": "vdb", "swap": "dm-2"}`).

        slabs: names of slab caches, whose objects each fourth sample counts (/proc/slabinfo).
        priority is SCHED_FIFO's, its writer gets one less; 0 leaves the process an ordinary one.
        root stands before /proc, /sys and /dev (tests).
        """
        words = [str(out.resolve()), str(hz), str(priority), root, *_counted(slabs)]
        super().__init__(program, SAMPLER, [*words, *_pairs(devices)], patience_s)


class EvidenceProcess(SamplingObserver):
    """The observer of what the beacon's streams wait for (monitors/evidence)."""

    def __init__(
        self,
        program: Path,
        out: Path,
        beacon: Beacon,
        devices: dict[str, str],
        *,
        hz: float = 4.0,
        priority: int = EVIDENCE_PRIORITY,
        patience_s: float = 60.0,
        trace: bool = True,
        live_lock_s: float = 0.0,
        finite: Collection[str] = (),
    ) -> None:
        """devices and priority as for the sampler; trace: also let the kernel sum its events.

        live_lock_s: how long the streams in finite, which should end, may say next to nothing
        while the kernel works flat out (docs/developer/live-lock.md); 0: for ever.
        """
        words = [str(out.resolve()), str(hz), str(priority), str(int(trace)), str(live_lock_s)]
        if live_lock_s and not finite:
            raise ValueError("a live-lock of streams that are not said")
        words.append("".join(str(int(name in finite)) for name in beacon.names))
        words += [*map(str, beacon.fds), str(len(beacon.names)), *beacon.names, *_pairs(devices)]
        super().__init__(program, EVIDENCE_OBSERVER, words, patience_s, beacon.fds)

    def live_lock(self, recorder: "RecorderProcess") -> str:
        """Wait until this one tells of a live-lock: why; or until the recorder speaks: nothing."""
        while recorder not in select.select([self, recorder], [], [])[0]:
            facts = self.line(READY_S)
            if facts is None:
                return ""  # it died: who stops it says so
            if LIVE_LOCK in facts:
                return str(facts[LIVE_LOCK])
        return ""


class KeysProcess(SamplingObserver):
    """The observer that presses keys at programs that wait (monitors/keys)."""

    # They take turns: each has waited for 31 s when the first of its three keys is due.
    TURN_S, GAP_S = 33.0, 1.0

    def __init__(
        self,
        program: Path,
        out: Path,
        typed_at: Sequence[KeyProgram],
        *,
        step_s: float | None = None,
        gap_s: float = GAP_S,
        priority: int = KEYS_PRIORITY,
        patience_s: float = 60.0,
    ) -> None:
        """typed_at: at most eight, which take turns each step_s: three keys are due, gap_s apart.

        priority as for the sampler.
        """
        step_s = step_s or self.TURN_S / max(1, len(typed_at))
        words = [str(out.resolve()), str(priority), str(step_s), str(gap_s)]
        for one in typed_at:
            words += [one.name, "window" if one.window else "terminal", one.before]
            words += _counted(one.argv)
            words += _counted([f"{name}={value}" for name, value in one.env.items()])
        super().__init__(program, KEYS, words, patience_s)

    def prepare(self) -> list[str]:
        """Start the programs; what went wrong with which of them, which then gets no keys."""
        with contextlib.suppress(OSError):
            self.tell(b"prepare\n")
            if facts := self.line(READY_S * 2):
                problems: list[str] = facts["problems"]
                return problems
        return ["it did not start its programs"]


class RecorderProcess(Observer):
    """A recorder that has started its streams: the workload goes on from `t0` (monotonic s)."""

    def __init__(
        self,
        program: Path,
        out: Path,
        streams: list[Stream],
        *,
        until: set[str],
        timeout_s: float,
        priority: int = RECORDER_PRIORITY,
        when_locked: Callable[[], None] = lambda: None,
        when_ready: Callable[[list[str]], float] = lambda problems: time.monotonic(),
        beacon: Beacon | None = None,
    ) -> None:
        """Return when all streams have begun; UserError if one could not.

        when_locked is called when the recorder holds all of its memory, before it starts programs.
        when_ready is called with the recorder's problems when all programs have started up. It
        returns t0 (monotonic s), when they begin: a little ahead, or whoever else is to be told
        would be told by a runner that has to share the machine with the load.

        Events are appended to the events.jsonl of out. It ends by itself when the streams named in
        until have ended, or timeout_s after t0. priority as for the sampler. beacon is shown each
        line of the streams it names.
        """
        assert until <= {stream.name for stream in streams}
        fds = beacon.fds if beacon else ()
        super().__init__(program, RECORDER, [str(priority)], fds)
        self.problems: list[str] = []
        words = [str(out.resolve()), str(timeout_s), str(READY_S)]
        words += [*map(str, beacon.fds), *_counted(beacon.names)] if beacon else ["-1", "-1", "0"]
        words.append(str(len(streams)))
        for stream in streams:
            words += [stream.name, str(int(stream.waits)), str(int(stream.name in until))]
            words += _counted(stream.argv)
            words += _counted([f"{name}={value}" for name, value in stream.env.items()])
        try:
            self.t0 = self._begin(words, when_locked, when_ready)
        except BrokenPipeError:
            self.finish(10.0)
            raise UserError("the recorder did not start") from None
        except BaseException:
            self.finish(10.0)
            raise

    def _begin(
        self,
        words: list[str],
        when_locked: Callable[[], None],
        when_ready: Callable[[list[str]], float],
    ) -> float:
        spec = b"".join(os.fsencode(word) + b"\0" for word in words)
        self.tell(len(spec).to_bytes(4, "little") + spec)
        facts = self.line(READY_S)
        if facts is not None and "locked" in facts:
            when_locked()
            self.tell(b"prepare\n")
            facts = self.line(READY_S * 2)
        if facts is not None and "prepared" in facts:
            self.problems = facts["problems"]
            self.tell(f"t0 {when_ready(self.problems)!r}\n".encode())
            facts = self.line(READY_S)
        if facts is None or "t0" not in facts:
            raise UserError(str((facts or {}).get("error", "the recorder did not start")))
        return float(facts["t0"])

    def wait(self) -> dict[str, Any] | None:
        """Its facts (monitors/recorder/main.c) when it has ended by itself; None if it died."""
        facts = self.line(None)
        self.finish(0.0)
        return facts

    def stop(self, patience_s: float = 60.0) -> dict[str, Any] | None:
        """End all streams now; its facts, or None."""
        return self.finish(patience_s)
