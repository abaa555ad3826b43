# SPDX-License-Identifier: GPL-2.0-or-later
"""A program under a terminal of its own, by pexpect: so that it prints line by line."""

import os
import signal
import termios
import tty
from typing import Any

from monitors.recorder.child import IGNORED, Child, StartError, Stream, become_ordinary


class TerminalChild(Child):
    """A program that has a terminal for its output and its input."""

    def __init__(self, stream: Stream) -> None:
        try:
            import pexpect
        except ImportError:
            raise StartError("pexpect is missing (apt-get install python3-pexpect)") from None
        command, *arguments = stream.argv
        try:
            self._process: Any = pexpect.spawn(
                command, arguments, env=stream.env, echo=False, preexec_fn=_prepare
            )
        except (pexpect.ExceptionPexpect, OSError) as error:
            reason = str(error).splitlines()[0]
            raise StartError(f"cannot start {stream.name}: {reason}") from None
        assert self._process.pid is not None
        self.pid = self._process.pid
        self.fd = self._process.child_fd

    def go(self) -> None:
        os.write(self.fd, b"go\n")

    def close(self) -> None:
        # Without pexpect's waits and signals: the recorder reaps.
        child = self._process
        child.ptyproc.terminated = child.terminated = True
        child.ptyproc.fileobj.close()
        child.ptyproc.closed = child.closed = True
        child.child_fd = child.ptyproc.fd = -1


def _prepare() -> None:
    become_ordinary(os.getpid())
    for number in IGNORED:
        signal.signal(number, signal.SIG_DFL)
    tty.setraw(1, termios.TCSANOW)  # a newline stays one byte
