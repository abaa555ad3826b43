# SPDX-License-Identifier: GPL-2.0-or-later
"""Starts the program that eats memory, prints how much it has, and waits for its end.

If neither the kernel nor a daemon kills it, this program does after --patience seconds. It then
goes on for AFTER_S seconds, in which the windows are watched.
"""

import argparse
import mmap
import os
import signal
import struct
import sys
import time
from pathlib import Path
from typing import NoReturn

from contract import start_up
from errors import run_command
from workloads.load_output import SAY_S, SCOPE, begin_of, end_of, say, write_json

BEGIN, END = begin_of("eating"), end_of("eating")
BEFORE_S = 5.0  # the windows alone
AFTER_S = 20.0  # the windows after the runaway's end
LOOK_S = 0.1
CHUNK = 1 << 20


def eat(eaten: mmap.mmap, random_share: int) -> NoReturn:
    """Take memory without end; eaten: gets the MiB taken so far.

    random_share: percent of a page.
    """
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    random = mmap.PAGESIZE * random_share // 100
    page = os.urandom(random) + bytes(mmap.PAGESIZE - random)
    filling = page * (CHUNK // mmap.PAGESIZE)
    held = []
    while True:
        chunk = mmap.mmap(-1, CHUNK, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        chunk[:] = filling
        held.append(chunk)
        eaten[:8] = struct.pack("Q", len(held))


def move_to_own_scope() -> None:
    """Leave the scope of this program, if it has one: systemd-oomd kills all that is in a scope."""
    if SCOPE in os.environ:
        own = Path(os.environ[SCOPE]).with_name("eater.scope")
        own.mkdir()
        (own / "cgroup.procs").write_text("0")


def watch(child: int, eaten: mmap.mmap, patience_s: float) -> dict[str, float]:
    """Wait for the child's end, kill it after patience_s seconds.

    Returns the figures (seconds, MiB).
    """
    began = last_line_at = time.monotonic()
    gave_up = False
    while not os.waitpid(child, os.WNOHANG)[0]:
        now = time.monotonic()
        if now - last_line_at >= SAY_S:
            last_line_at = now
            say(f"eating: {struct.unpack('Q', eaten[:8])[0]} MiB in {now - began:.1f} s")
        if now - began >= patience_s and not gave_up:
            gave_up = True
            os.kill(child, signal.SIGKILL)
        time.sleep(LOOK_S)
    ended = time.monotonic()
    return {
        BEGIN: began,
        END: ended,
        "eaten-mib": float(struct.unpack("Q", eaten[:8])[0]),
        "lived": ended - began,
        "gave-up": float(gave_up),
    }


def main(argv: list[str]) -> int:
    """The command: run the runaway program to its end; returns its exit status."""
    parser = argparse.ArgumentParser(prog="python3 -m workloads.runaway_load")
    parser.add_argument("--random", type=int, required=True, metavar="PERCENT")
    parser.add_argument("--patience", type=float, required=True, metavar="SECONDS")
    parser.add_argument("--figures", type=Path, required=True)
    parser.add_argument("--wait", action="store_true")
    options = parser.parse_args(argv)
    eaten = mmap.mmap(-1, mmap.PAGESIZE)
    if options.wait:
        start_up.wait()
    _idle(BEFORE_S)
    child = os.fork()
    if not child:
        move_to_own_scope()
        eat(eaten, options.random)
    figures = watch(child, eaten, options.patience)
    write_json(figures, options.figures)
    say(f"ended: it had {figures['eaten-mib']:.0f} MiB and lived for {figures['lived']:.1f} s")
    _idle(AFTER_S)
    return 0


def _idle(seconds: float) -> None:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        say("idle")
        time.sleep(SAY_S)


if __name__ == "__main__":
    sys.exit(run_command("runaway_load", lambda: main(sys.argv[1:])))
