# SPDX-License-Identifier: GPL-2.0-or-later
"""Stands for an idle desktop program: wakes every 100 ms and uses a little of its memory.

At each deadline it writes a byte to each page of a tenth of its working set, which is not locked,
so that all of it is used once a second. `beat K late S` gives the seconds from the deadline to the
end of these writes. After a stall every missed deadline still gets its line. A beat that is more
than 0.1 s late counts as missed.
"""

import argparse
import gc
import mmap
import re
import sys
import time
from collections.abc import Callable

from contract import start_up
from errors import run_command
from fake_player.pace import BEAT_S, Pace, late_by, say

TENTHS = 10
UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def size_of(text: str) -> int:
    """For argparse: the bytes of a text such as 8M; at least ten pages."""
    match = re.fullmatch(r"(\d+)([KMG]?)", text)
    if match is None or (size := int(match[1]) * UNITS[match[2]]) < TENTHS * mmap.PAGESIZE:
        raise argparse.ArgumentTypeError(f"{text!r} is not a size of at least ten pages, like 8M")
    return size


def beat(working_set: int, pace: Pace, begin: Callable[[], None]) -> int:
    """Beat until a signal ends it; returns the number of missed deadlines. working_set: bytes.

    begin() returns when the first beat is due.
    """
    memory = mmap.mmap(-1, working_set, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    part = working_set // TENTHS // mmap.PAGESIZE * mmap.PAGESIZE
    ends = [*range(part, part * TENTHS, part), working_set]
    memory[:: mmap.PAGESIZE] = bytes(len(range(0, working_set, mmap.PAGESIZE)))
    missed = 0
    begin()
    start = time.monotonic()
    number = 0
    while not pace.wait_until(deadline := start + number * BEAT_S):
        tenth = number % TENTHS
        pages = range(part * tenth, ends[tenth], mmap.PAGESIZE)
        memory[pages.start : pages.stop : pages.step] = bytes([number & 0xFF]) * len(pages)
        late = late_by(deadline)
        say(f"beat {number} late {late:.3f}")
        missed += late > BEAT_S
        number += 1
    return missed


def main(argv: list[str]) -> int:
    """The command; returns its exit status."""
    parser = argparse.ArgumentParser(
        prog="python3 -m fake_player.heartbeat",
        description="Wake every 100 ms and use a little memory, as an idle desktop program does.",
    )
    parser.add_argument(
        "--working-set",
        type=size_of,
        default=size_of("8M"),
        metavar="SIZE",
        help="size of the used memory, such as 8M",
    )
    parser.add_argument(
        "--wait", action="store_true", help="print `ready`, begin when a line is read"
    )
    options = parser.parse_args(argv)
    gc.disable()
    begin = start_up.wait if options.wait else lambda: None
    say(f"missed {beat(options.working_set, Pace(), begin)}")
    return 0


if __name__ == "__main__":
    sys.exit(run_command("heartbeat", lambda: main(sys.argv[1:])))
