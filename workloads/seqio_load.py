# SPDX-License-Identifier: GPL-2.0-or-later
"""Makes the file system on the RAID, then times fio's writes and reads there; or only writes.

It prints a line every half second while a command works and one when it is done, and at the end
writes a JSON file of figures. Between phases it waits until the observers have taken a sample: the
moments (CLOCK_MONOTONIC) are among the figures, so that trace.tsv can be summed up for each phase.

fio does what iozone does: one process per file, records of 64 KiB one after the other, no hint to
the kernel, and no dropping of the page cache before. Each process ends with an fsync (iozone -e),
so that all counted bytes are on the disks.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path

from contract import start_up
from errors import UserError, run_command
from workloads import raid
from workloads.load_output import SAY_S, SEEN_S, begin_of, end_of, say, write_json

MODES = {"write": "write", "rewrite": "write", "read": "read", "reread": "read"}  # fio's --rw
RECORD_KIB = 64
SECTOR, MIB = 512, 1 << 20
LOOK_S = 0.1
SAID = 4096  # bytes that are read from the end of a program's stderr
SET_UP = "set-up"


def moved(disks: list[str]) -> dict[str, int]:
    """The bytes that the disks together have read and written so far (/sys/block/*/stat)."""
    total = {"read": 0, "write": 0}
    for name in disks:
        words = Path(f"/sys/block/{name}/stat").read_text().split()
        total["read"] += int(words[2]) * SECTOR
        total["write"] += int(words[6]) * SECTOR
    return total


def fio_argv(
    folder: Path, mode: str, processes: int, size: int, rate: int, result: Path
) -> list[str]:
    """fio's command line for `processes` processes, each with a file of `size` bytes.

    rate: bytes per second of each process; 0: as fast as possible.
    """
    return [
        *("fio", f"--name={mode}", f"--directory={folder}", "--filename_format=f.$jobnum"),
        *(f"--rw={MODES[mode]}", f"--bs={RECORD_KIB}k", f"--size={size}"),
        *(f"--numjobs={processes}", "--group_reporting", "--ioengine=psync"),
        *("--fallocate=none", f"--overwrite={int(mode != 'write')}", "--end_fsync=1"),
        *("--invalidate=0", "--fadvise_hint=0", "--zero_buffers", "--clocksource=clock_gettime"),
        *([f"--rate={rate}"] if rate else []),
        *("--gtod_reduce=1", "--eta=never", "--output-format=json", f"--output={result}"),
    ]


def read_seconds(text: str, mode: str, expected: int) -> float:
    """The seconds up to the last process's end, from fio's JSON; UserError if bytes are missing."""
    try:
        (job,) = json.loads(text[text.index("{") :])["jobs"]
        part = job[MODES[mode]]
        numbers = [job["error"], part["io_bytes"], part["runtime"]]
    except (ValueError, KeyError, TypeError, RecursionError) as problem:
        raise UserError(f"fio: {mode}: its result cannot be read: {problem!r}") from None
    match numbers:
        case [0, int(moved_bytes), int(ms)] if moved_bytes == expected and ms > 0:
            return ms / 1000
    raise UserError(f"fio: {mode}: error, bytes (of {expected}) and ms are {numbers}")


class Load:
    """What one run does; figures: those measured so far."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._o = options
        self.figures: dict[str, float] = {}
        self._result: Path = options.figures.with_name("fio.json")

    def set_up(self) -> None:
        """Make the file system."""
        self._begin(SET_UP)
        for argv in raid.file_system(self._o.place):
            self._run(argv[0], "write", list(argv))
        os.sync()
        self._end(SET_UP)
        say("the file system is made")

    def measure(self, processes: int) -> None:
        """Measure all modes with this number of processes, after removing the previous files."""
        self.clear()
        for mode in MODES:
            phase = f"{MODES[mode]}-{processes}"
            if begin_of(phase) not in self.figures:
                self._begin(phase)
            before = moved(self._o.disks)
            seconds = self.fio(mode, processes)
            os.sync()
            after = moved(self._o.disks)
            way = MODES[mode]
            self.figures[f"seconds-{mode}-{processes}"] = seconds
            self.figures[f"rate-{mode}-{processes}"] = self._o.mib * MIB / 1e6 / seconds
            self.figures[f"mib-{mode}-{processes}"] = (after[way] - before[way]) / MIB
            self._end(phase)
        self.figures["time"] = sum(
            value for key, value in self.figures.items() if key.startswith("seconds-")
        )

    def fio(self, mode: str, processes: int) -> float:
        """Run fio; returns its seconds. UserError if it failed."""
        size, rate = self._o.mib * MIB // processes, self._o.rate // processes
        argv = fio_argv(self._o.place, mode, processes, size, rate, self._result)
        self._run(f"{mode}, {processes}", MODES[mode], argv)
        seconds = read_seconds(self._result.read_text(), mode, size * processes)
        self._result.unlink()
        self.while_it_works()
        rate = size * processes / 1e6 / seconds
        say(f"{mode}, {processes}: done after {seconds:.1f} s, {rate:.1f} MB/s")
        return seconds

    def _run(self, what: str, way: str, argv: list[str]) -> None:
        """Run a command to its end; prints how much the disks have read or written meanwhile."""
        before, began, last_line_at = moved(self._o.disks)[way], time.monotonic(), 0.0
        # Not a pipe: nothing reads it before the end, and a program that fills a pipe waits.
        with open(os.memfd_create("stderr"), "rb") as complaints:
            running = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=complaints)
            while running.poll() is None:
                time.sleep(LOOK_S)
                took = time.monotonic() - began
                if took - last_line_at >= SAY_S:
                    last_line_at = took
                    done = (moved(self._o.disks)[way] - before) // MIB
                    say(f"{what}: {done} MiB of the disks in {took:.1f} s")
                    self.while_it_works()
            if running.returncode:
                complaints.seek(max(0, complaints.seek(0, os.SEEK_END) - SAID))
                lines = complaints.read().decode(errors="replace").strip().splitlines()
                raise UserError(f"{what}: {lines[-1] if lines else f'status {running.returncode}'}")

    def while_it_works(self) -> None:
        """Called repeatedly while a command works; nothing by default."""

    def clear(self) -> None:
        """Remove the files."""
        for path in self._o.place.glob("f.*"):
            path.unlink()
        os.sync()

    def write_figures(self) -> None:
        """Write the figures so far; the file is replaced as a whole."""
        write_json(self.figures, self._o.figures)

    def _begin(self, phase: str) -> None:
        time.sleep(SEEN_S)
        self.figures[begin_of(phase)] = time.monotonic()

    def _end(self, phase: str) -> None:
        self.figures[end_of(phase)] = time.monotonic()


class Endless(Load):
    """Writes the same files again and again on an existing file system, until it is ended."""

    def __init__(self, options: argparse.Namespace) -> None:
        super().__init__(options)
        self._began = 0.0
        self._before = 0  # bytes that the disks had written before the first file

    def go_on(self) -> None:
        """Write the files, then rewrite them forever."""
        self._began, self._before = time.monotonic(), moved(self._o.disks)["write"]
        self.fio("write", self._o.least)
        while True:
            self.fio("rewrite", self._o.least)

    def while_it_works(self) -> None:
        """Update the figures: the run may end at any moment."""
        written = moved(self._o.disks)["write"] - self._before
        seconds = time.monotonic() - self._began
        self.figures |= {
            "mib-written": written / MIB,
            "rate-written": written / 1e6 / seconds,
        }
        self.write_figures()


def main(argv: list[str]) -> int:
    """The command: run all steps; returns its exit status."""
    parser = argparse.ArgumentParser(prog="python3 -m workloads.seqio_load")
    parser.add_argument("--place", type=Path, required=True, help="where the RAID is mounted")
    parser.add_argument("--disks", nargs="+", required=True)
    parser.add_argument("--mib", type=int, required=True, help="size of all files together")
    parser.add_argument("--least", type=int, required=True)
    parser.add_argument("--most", type=int, required=True)
    parser.add_argument(
        "--endless", action="store_true", help="write with `least` processes until ended"
    )
    parser.add_argument(
        "--rate", type=int, default=0, help="bytes per second of all processes together"
    )
    parser.add_argument("--figures", type=Path, required=True)
    parser.add_argument("--wait", action="store_true")
    options = parser.parse_args(argv)
    load = Endless(options) if options.endless else Load(options)
    if options.wait:
        start_up.wait()
    if isinstance(load, Endless):
        load.go_on()
    load.set_up()
    load.write_figures()
    processes = options.least
    while processes <= options.most:
        load.measure(processes)
        load.write_figures()
        processes *= 2
    return 0


if __name__ == "__main__":
    sys.exit(run_command("seqio_load", lambda: main(sys.argv[1:])))
