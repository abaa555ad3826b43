# SPDX-License-Identifier: GPL-2.0-or-later
"""Sends paced echoes; prints `echo K lost L missed M` ten times a second, or at each slower echo.

K echoes were sent so far, L of their replies were lost, and M echoes were not sent, because this
program did not run in time or the kernel had no memory for the request.
"""

import argparse
import gc
import math
import sys
import time
from collections.abc import Callable

from contract import start_up
from echo_load.echo import PAYLOAD, REPLY_S, Echo
from errors import UserError, run_command
from fake_player.pace import Pace, say

LINE_S = 0.1
CATCH_UP_S = 0.1
BURST = 32
RATE = 100


def load(echo: Echo, rate: int, pace: Pace, begin: Callable[[], None]) -> None:
    """Send `rate` echoes per second at absolute deadlines until a signal ends it.

    begin() returns when the first echo is due. If this program got no CPU, only the echoes of the
    last CATCH_UP_S seconds are sent later: the load shall not become a storm after each stall.
    """
    begin()
    start = time.monotonic()
    number = missed = 0
    last_line_at = -math.inf
    while not pace.wait_until(start + number / rate):
        due = int((time.monotonic() - start) * rate) + 1
        first = max(number, due - max(1, int(CATCH_UP_S * rate)))
        missed += first - number
        number = min(due, first + BURST)
        # All due echoes are sent before any reply is read, so that they need memory simultaneously.
        missed += sum(not echo.send() for _ in range(first, number))
        lost = echo.look()
        now = time.monotonic() - start
        if now >= last_line_at + LINE_S:
            last_line_at = max(last_line_at + LINE_S, now - LINE_S)
            say(f"echo {echo.sent} lost {lost} missed {missed}")


def main(argv: list[str]) -> int:
    """The command, which SIGTERM ends; returns its exit status."""
    parser = argparse.ArgumentParser(
        prog="python3 -m echo_load",
        description="Send paced ICMP echoes to this machine whose replies need order-N memory.",
        epilog=f"A reply that does not come within {REPLY_S:g} s counts as lost.",
    )
    parser.add_argument("--order", type=int, choices=sorted(PAYLOAD), default=2)
    parser.add_argument("--rate", type=int, default=RATE, metavar="PER_S", help="echoes per second")
    parser.add_argument(
        "--wait", action="store_true", help="print `ready`, begin when a line is read"
    )
    options = parser.parse_args(argv)
    if options.rate < 1:
        parser.error("--rate must be at least 1")
    gc.disable()
    pace = Pace()
    try:
        echo = Echo(options.order)
    except PermissionError:
        raise UserError("ICMP echoes need root (CAP_NET_RAW)") from None
    load(echo, options.rate, pace, start_up.wait if options.wait else lambda: None)
    return 0


if __name__ == "__main__":
    sys.exit(run_command("echo_load", lambda: main(sys.argv[1:])))
