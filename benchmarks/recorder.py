# SPDX-License-Identifier: GPL-2.0-or-later
"""How many lines per second are stamped: `python3 -m benchmarks.recorder [--mmtests FILE]`.

A program floods a pipe with lines of 20 bytes. The suite's recorder stamps them and writes them to
a file; so do latency_output.py, ts (of moreutils, if installed) and MMTests' latency-output (if its
path is given). The time from each tool's first to its last byte counts, not its start-up. Output:
median, minimum and maximum of some alternating runs. Target for the recorder: 1,000,000 lines/s.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from errors import UserError, run_command
from monitors.launch import RecorderProcess
from monitors.streams import Stream
from setup.observers import program

Run = Callable[[Path, int], float]

SUITE = Path(__file__).resolve().parents[1]
FLOOD = "yes 'commit 123 of 456789' | head -n {}"
FIRST_LINES, LEAST_S = 50_000, 0.5  # of a run; the number of lines grows until it takes LEAST_S
START_S = 30.0


def check_lines(path: Path, least: int) -> None:
    """UserError if this log has fewer than `least` lines."""
    with open(path, "rb") as log:
        count = sum(1 for _ in log)
    if count < least:
        raise UserError(f"{path.name}: only {count} of {least} lines were recorded")


def recorder(folder: Path, lines: int) -> float:
    """The seconds from the program's begin to the recorder's end."""
    script = f"echo ready; read go; {FLOOD.format(lines)}"
    stream = Stream("flood", ["sh", "-c", script], dict(os.environ), waits=True)
    process = RecorderProcess(
        program(), folder, [stream], until={"flood"}, timeout_s=600, priority=0
    )
    process.wait()
    taken = time.monotonic() - process.t0
    check_lines(folder / "latency-flood.log", lines)
    return taken


def piped(command: list[str]) -> Run:
    """A function that measures the seconds of a command that stamps its standard input.

    The measurement begins when the command has stamped a first line.
    """

    def run(folder: Path, lines: int) -> float:
        path = folder / "log"
        with open(path, "wb") as log:
            stamping = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=log)
        assert stamping.stdin
        stamping.stdin.write(b"begin\n")
        stamping.stdin.flush()
        give_up = time.monotonic() + START_S
        while not path.stat().st_size:
            if time.monotonic() > give_up:
                raise UserError(f"{command[0]} stamped no line within {START_S:.0f} s")
            time.sleep(0.01)
        began = time.monotonic()
        subprocess.run(["sh", "-c", FLOOD.format(lines)], stdout=stamping.stdin, check=True)
        stamping.stdin.close()
        stamping.wait()
        taken = time.monotonic() - began
        check_lines(path, lines)
        return taken

    return run


def rate(run: Run) -> float:
    """The lines per second of a run that takes at least LEAST_S seconds."""
    lines = FIRST_LINES
    while True:
        with tempfile.TemporaryDirectory(prefix="recorder-") as folder:
            taken = run(Path(folder), lines)
        if taken >= LEAST_S:
            return lines / taken
        lines *= 4


def main() -> int:
    """Measure and print the table; returns the exit status."""
    parser = argparse.ArgumentParser(prog="benchmarks.recorder", description=__doc__)
    parser.add_argument(
        "--mmtests", type=Path, metavar="FILE", help="monitors/latency-output there"
    )
    parser.add_argument("--runs", type=int, default=5, metavar="N")
    options = parser.parse_args()
    contenders: dict[str, Run] = {"recorder": recorder}
    contenders["latency_output.py"] = piped([sys.executable, str(SUITE / "latency_output.py")])
    if shutil.which("ts"):
        contenders["ts"] = piped(["ts", "%.s"])
    if options.mmtests:
        contenders["latency-output (MMTests)"] = piped(["perl", str(options.mmtests)])
    rates_of: dict[str, list[float]] = {name: [] for name in contenders}
    for number in range(options.runs):
        for name in sorted(contenders, reverse=number % 2 == 1):
            rates_of[name].append(rate(contenders[name]))
    print(f"{'lines/s':24} {'median':>12} {'least':>12} {'most':>12}")
    for name, rates in rates_of.items():
        print(f"{name:24} {np.median(rates):12,.0f} {min(rates):12,.0f} {max(rates):12,.0f}")
    return 0


if __name__ == "__main__":
    sys.exit(run_command("benchmarks.recorder", main))
