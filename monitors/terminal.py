# SPDX-License-Identifier: GPL-2.0-or-later
"""Stamps the lines of one program on a terminal, or those of standard input: latency_output.py's.

On a terminal any program prints line by line. The suite's own recorder is a program in C and takes
pipes (monitors/recorder); the stamps and the lines are the same.
"""

import errno
import os
import re
import select
import shutil
import signal
import termios
import threading
import time
import tty
from collections import deque
from collections.abc import Callable
from typing import Any

from errors import UserError
from monitors.lines import LineLog

READ = 16384  # bytes asked for by one read
POLL_S = 0.25  # whether to stop is asked at least this often
EXIT_POLL_S = 0.01  # the same while the program has closed its output and has not ended yet
GRACE_S = 5.0  # between SIGTERM and SIGKILL
KILL_S = 30.0  # how long a killed program may take to die: it may be waiting for a disk
DRAIN_S = 5.0  # how long output may still come after the program has ended
BOUND = 4 << 20  # bytes kept for an output that takes nothing
PATIENCE_S = 1.0  # how long reading waits for an output that is slow but takes data
BATCH_S = 0.025
RETRY_S = 0.25
# Python ignores two, and whoever runs us in the background the third.
IGNORED = (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGINT)
SPLIT_AT = re.compile(r"""[\s'"\\]""")  # by pexpect, in a command without arguments
CLOSE_S = 2.0  # how long an output that takes nothing is still tried at the end


class Writer:
    """A bounded queue, and a thread that empties it: stamping never waits for writing."""

    def __init__(self, fd: int) -> None:
        self.gone = False  # its reader went away
        self.lost = [0, 0]  # lines and bytes
        self._fd = fd
        self._queue: deque[bytes] = deque()
        self._put = self._done = 0  # bytes; each has one writer, so there is no lock
        self._failing = False  # it took nothing at the last attempt
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    def put(self, text: bytes) -> None:
        """Queue whole lines; they are lost if too much is waiting."""
        give_up = time.monotonic() + PATIENCE_S
        while self._waiting() > BOUND // 2 and not self._failing and time.monotonic() < give_up:
            time.sleep(0.002)
        if self._waiting() + len(text) > BOUND:
            self._lose(text)
        else:
            self._put += len(text)
            self._queue.append(text)

    def finish(self) -> None:
        """Write what is queued, with patience for an output that takes nothing."""
        self._ending.set()
        self._thread.join(GRACE_S)
        for text in list(self._queue):
            self._lose(text)

    def _waiting(self) -> int:
        return self._put - self._done

    def _lose(self, text: bytes) -> None:
        self.lost[0] += text.count(b"\n")
        self.lost[1] += len(text)

    def _work(self) -> None:
        while not self._ending.wait(RETRY_S if self._failing else BATCH_S):
            self._write()
        self._write()
        give_up = time.monotonic() + CLOSE_S
        while self._failing and time.monotonic() < give_up:
            time.sleep(RETRY_S)
            self._write()

    def _write(self) -> None:
        # What is being written stays in the queue: it is lost if that never ends.
        try:
            while self._queue:
                text = self._queue[0]
                sent = self._send(text)
                self._done += sent
                if sent < len(text):
                    self._queue[0] = text[sent:]
                else:
                    self._queue.popleft()
            self._failing = False
        except OSError:
            self._failing = True

    def _send(self, text: bytes) -> int:
        try:
            return len(text) if self.gone else os.write(self._fd, text)
        except BrokenPipeError:
            self.gone = True
            return len(text)


class Program:
    """A program with a terminal of its own for its input and its output."""

    def __init__(self, name: str, argv: list[str]) -> None:
        """name: the stream's. UserError if it cannot be started."""
        try:
            # Not at the top: who only stamps a pipe needs the standard library alone.
            import pexpect
        except ImportError:
            raise UserError(
                "CMD needs pexpect (apt-get install python3-pexpect)", hint="or pipe into this"
            ) from None
        command, *arguments = argv
        program = shutil.which(command)
        if program is None:
            raise UserError(f"cannot start {name}: no such program: {command!r}")
        if not arguments:
            program = SPLIT_AT.sub(r"\\\g<0>", program)
        try:
            self._process: Any = pexpect.spawn(program, arguments, echo=False, preexec_fn=_prepare)
        except (pexpect.ExceptionPexpect, OSError) as error:
            raise UserError(f"cannot start {name}: {str(error).splitlines()[0]}") from None
        self.fd: int = self._process.child_fd
        self._status: int | None = None

    def signal(self, number: int) -> None:
        """Send a signal to the program and all that it started."""
        try:
            os.killpg(self._process.pid, number)
        except (ProcessLookupError, PermissionError):
            return

    def status(self) -> int | None:
        """Its exit status (negative: the signal), or None; all that it left behind is killed."""
        if self._status is None:
            # Left unreaped at first: until then nobody can have its number, nor its group's.
            how = os.WEXITED | os.WNOHANG | os.WNOWAIT
            if os.waitid(os.P_PID, self._process.pid, how) is None:
                return None
            self.signal(signal.SIGKILL)
            _pid, status = os.waitpid(self._process.pid, 0)
            self._status = os.waitstatus_to_exitcode(status)
            self._process.terminated = self._process.ptyproc.terminated = True
        return self._status


def _prepare() -> None:
    for number in IGNORED:
        signal.signal(number, signal.SIG_DFL)
    tty.setraw(1, termios.TCSANOW)  # a newline stays one byte


class Recording:
    """The stamped lines of a program, or of standard input, go into writer."""

    def __init__(self, program: Program | None, writer: Writer) -> None:
        self._log = LineLog(time.monotonic_ns())
        self._program = program
        self._writer = writer
        self._fd = program.fd if program else 0
        self._open = True
        self._logging = True  # what is said because it was asked to end is not a part of it
        self._status = None if program else 0
        self._drained = float("inf")  # no output is awaited after that
        self._poll = select.poll()
        self._poll.register(self._fd, select.POLLIN)

    def run(self, should_stop: Callable[[], bool]) -> int:
        """Record until it has ended, or should_stop: then end it. Its status."""
        while not self._ended() and not should_stop():
            self._turn(POLL_S)
        self._log_end(time.monotonic_ns())
        for number, patience in ((signal.SIGTERM, GRACE_S), (signal.SIGKILL, KILL_S)):
            give_up = time.monotonic() + patience
            if self._program and not self._ended():
                self._program.signal(number)
                self._program.signal(signal.SIGCONT)
            while not self._ended() and time.monotonic() < give_up:
                self._turn(EXIT_POLL_S)
        self._writer.finish()
        return self._status or 0

    def _ended(self) -> bool:
        return self._status is not None and not self._logging

    def _turn(self, patience_s: float) -> None:
        if not self._open:
            time.sleep(EXIT_POLL_S)
        elif self._poll.poll(1000 * patience_s):
            self._read()
        if self._status is None and self._program:
            self._status = self._program.status()
            if self._status is not None:
                self._drained = time.monotonic() + DRAIN_S
        if time.monotonic() > self._drained:
            self._log_end(time.monotonic_ns())

    def _read(self) -> None:
        try:
            chunk = os.read(self._fd, READ)
        except OSError as error:
            # What a terminal says when nobody has its other end open any more.
            if error.errno != errno.EIO:
                raise
            chunk = b""
        now_ns = time.monotonic_ns()
        if not chunk:
            self._log_end(now_ns)
            self._open = False
        elif self._logging and (text := self._log.feed(chunk, now_ns)):
            self._writer.put(text)

    def _log_end(self, now_ns: int) -> None:
        if self._logging:
            self._logging = False
            self._writer.put(self._log.end(now_ns))
