# SPDX-License-Identifier: GPL-2.0-or-later
"""Absolute deadlines every BEAT_S seconds, and signals that end a wait."""

import os
import select
import signal
import time
from types import FrameType

BEAT_S = 0.1
ENDING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class Pace:
    """Waits for deadlines until a signal of ENDING comes; the signal only ends a wait.

    Not with sigtimedwait(): CPython 3.11's takes a stop and continue after the deadline (EINTR) for
    a received signal.
    """

    def __init__(self) -> None:
        self._ending = False
        self._wake, out = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        signal.set_wakeup_fd(out, warn_on_full_buffer=False)
        for number in ENDING:
            signal.signal(number, self._end)

    def wait_until(self, deadline: float) -> bool:
        """Sleep until deadline (monotonic s), not at all if it has passed.

        True if a signal came.
        """
        while not self._ending and (left := deadline - time.monotonic()) > 0:
            select.select([self._wake], [], [], left)
        return self._ending

    def wait(self, seconds: float) -> bool:
        """Sleep for some seconds; True if a signal came."""
        return self.wait_until(time.monotonic() + seconds)

    def _end(self, number: int, frame: FrameType | None) -> None:
        self._ending = True


def say(line: str) -> None:
    """Print one line at once."""
    os.write(1, line.encode() + b"\n")


def late_by(deadline: float) -> float:
    """The seconds since deadline (monotonic s), cut to whole milliseconds as it is printed."""
    return max(0, int((time.monotonic() - deadline) * 1000)) / 1000
