# SPDX-License-Identifier: GPL-2.0-or-later
"""How many lines a second are stamped: `python3 -m benchmarks.recorder [--mmtests FILE]`.

A program floods a pipe with lines of 20 bytes, which the suite's recorder stamps and writes to a
file; so do latency_output.py, ts (moreutils; if it is there) and MMTests' latency-output (if its
path is given). Nobody's start-up counts, and everybody's last byte in the file does. Output:
median, least and most of some runs each, in turn. Target for the recorder: 1,000,000 lines/s.
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
FIRST_LINES, LEAST_S = 50_000, 0.5  # of a run; more lines until it takes so long
START_S = 30.0


def counted(path: Path, least: int) -> None:
    """UserError if there are fewer lines in this log."""
    with open(path, "rb") as log:
        found = sum(1 for _ in log)
    if found < least:
        raise UserError(f"{path.name}: {found} lines of {least} were recorded")


def recorder(folder: Path, lines: int) -> float:
    """Seconds from the begin of the program to the end of the recorder."""
    script = f"echo ready; read go; {FLOOD.format(lines)}"
    stream = Stream("flood", ["sh", "-c", script], dict(os.environ), waits=True)
    process = RecorderProcess(
        program(), folder, [stream], until={"flood"}, timeout_s=600, priority=0
    )
    process.wait()
    taken = time.monotonic() - process.t0
    counted(folder / "latency-flood.log", lines)
    return taken


def piped(command: list[str]) -> Run:
    """The same of a command that stamps its standard input; it has begun when it stamps a line."""

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
                raise UserError(f"{command[0]} stamps nothing")
            time.sleep(0.01)
        began = time.monotonic()
        subprocess.run(["sh", "-c", FLOOD.format(lines)], stdout=stamping.stdin, check=True)
        stamping.stdin.close()
        stamping.wait()
        taken = time.monotonic() - began
        counted(path, lines)
        return taken

    return run


def rate(run: Run) -> float:
    """Lines a second of one run that is long enough."""
    lines = FIRST_LINES
    while True:
        with tempfile.TemporaryDirectory(prefix="recorder-") as folder:
            taken = run(Path(folder), lines)
        if taken >= LEAST_S:
            return lines / taken
        lines *= 4


def main() -> int:
    """Measure, print the table."""
    parser = argparse.ArgumentParser(prog="benchmarks.recorder", description=__doc__)
    parser.add_argument("--mmtests", type=Path, metavar="FILE", help="its monitors/latency-output")
    parser.add_argument("--runs", type=int, default=5, metavar="N")
    options = parser.parse_args()
    contenders: dict[str, Run] = {"recorder": recorder}
    contenders["latency_output.py"] = piped([sys.executable, str(SUITE / "latency_output.py")])
    if shutil.which("ts"):
        contenders["ts"] = piped(["ts", "%.s"])
    if options.mmtests:
        contenders["latency-output (MMTests)"] = piped(["perl", str(options.mmtests)])
    found: dict[str, list[float]] = {name: [] for name in contenders}
    for number in range(options.runs):
        for name in sorted(contenders, reverse=number % 2 == 1):
            found[name].append(rate(contenders[name]))
    print(f"{'lines/s':24} {'median':>12} {'least':>12} {'most':>12}")
    for name, rates in found.items():
        print(f"{name:24} {np.median(rates):12,.0f} {min(rates):12,.0f} {max(rates):12,.0f}")
    return 0


if __name__ == "__main__":
    sys.exit(run_command("benchmarks.recorder", main))
