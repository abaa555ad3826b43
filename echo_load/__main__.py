# SPDX-License-Identifier: GPL-2.0-or-later
"""Paced echoes: `echo K lost L missed M`, ten lines a second, or one for each of slower ones.

K echoes were sent so far, the replies of L of them were lost, and M were not sent: their time had
passed before this program came to run, or the kernel had no memory for the request.
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
    """Send `rate` echoes a second on absolute deadlines until asked to end.

    begin() returns when the first is due. What a program that had no CPU could not send is made up
    for, but only of the last CATCH_UP_S: the load shall not become a storm after each freeze.
    """
    begin()
    start = time.monotonic()
    number = missed = 0
    said = -math.inf
    while not pace.wait_until(start + number / rate):
        due = int((time.monotonic() - start) * rate) + 1
        first = max(number, due - max(1, int(CATCH_UP_S * rate)))
        missed += first - number
        number = min(due, first + BURST)
        # All that is due is sent before a reply is taken: they need their memory at the same time.
        missed += sum(not echo.send() for _ in range(first, number))
        lost = echo.look()
        now = time.monotonic() - start
        if now >= said + LINE_S:
            said = max(said + LINE_S, now - LINE_S)
            say(f"echo {echo.sent} lost {lost} missed {missed}")


def main(argv: list[str]) -> int:
    """The command: SIGTERM ends it."""
    parser = argparse.ArgumentParser(
        prog="python3 -m echo_load",
        description="Send paced ICMP echoes to this machine whose replies need order-N memory.",
        epilog=f"A reply that has not come within {REPLY_S:g} s is lost.",
    )
    parser.add_argument("--order", type=int, choices=sorted(PAYLOAD), default=2)
    parser.add_argument("--rate", type=int, default=RATE, metavar="PER_S", help="echoes a second")
    parser.add_argument(
        "--wait", action="store_true", help="say `ready`, begin when a line is read"
    )
    options = parser.parse_args(argv)
    if options.rate < 1:
        parser.error("--rate: 1 or more")
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
