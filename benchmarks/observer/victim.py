# SPDX-License-Identifier: GPL-2.0-or-later
"""A stall of known length: a child prints its own clock, is stopped for 2.000 s and continues.

Standard output: `before MONO` and `after MONO` lines with CLOCK_MONOTONIC seconds, taken right
before each line is written, so that the recorder's gap can be compared with the victim's own.
"""

import ctypes
import os
import signal
import sys
import time

from contract import start_up

STOP_S = 2.000
MCL_CURRENT, MCL_FUTURE = 1, 2
PRIORITY = 10  # below the recorder's: this tests the instrument, not the freeze


def stay_in_memory(priority: int) -> None:
    """Lock this process's memory, which a child does not inherit, and set real-time priority."""
    ctypes.CDLL(None).mlockall(MCL_CURRENT | MCL_FUTURE)
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(priority))


def say(word: str) -> None:
    """Print word and the clock, unbuffered."""
    os.write(1, b"%s %.6f\n" % (word.encode(), time.monotonic()))


def victim() -> None:
    """Stop twice without printing; then print, stop and print, forever."""
    for _ in range(2):
        os.kill(os.getpid(), signal.SIGSTOP)
    while True:
        say("before")
        os.kill(os.getpid(), signal.SIGSTOP)
        say("after")
        time.sleep(1.0)


def stopped_for(child: int, seconds: float) -> None:
    """Wait until the child has stopped itself, and continue it that many seconds later."""
    os.waitid(os.P_PID, child, os.WSTOPPED)
    until = time.monotonic() + seconds
    time.sleep(max(0.0, until - time.monotonic()))
    os.kill(child, signal.SIGCONT)


def main() -> int:
    """Hold the child for STOP_S seconds each time it stops, N times (0: until SIGTERM).

    Returns the exit status.
    """
    times = int(sys.argv[1])
    stay_in_memory(PRIORITY + 1)
    child = os.fork()
    if child == 0:
        stay_in_memory(PRIORITY)
        victim()
    try:
        stopped_for(child, 0.1)  # a rehearsal, which brings all that is needed into memory
        os.waitid(os.P_PID, child, os.WSTOPPED | os.WNOWAIT)
        start_up.wait()
        stopped_for(child, 0.0)
        done = 0
        while times == 0 or done < times:
            stopped_for(child, STOP_S)
            done += 1
        time.sleep(0.2)
    finally:
        os.kill(child, signal.SIGKILL)
    return 0


if __name__ == "__main__":
    sys.exit(main())
