# SPDX-License-Identifier: GPL-2.0-or-later
"""Starts the dd's of memcg-dirty, first inside the group, then outside it, and times them.

It prints a line every half second while they write, a line for each dd that is done, once a second
the columns of device and CPU, and at the end writes a JSON file of figures. The device's columns
are those of iostat, by today's names (sysstat: request sizes in KiB, await in ms), computed from
/proc/diskstats (Documentation/admin-guide/iostats.rst); the CPU's are from /proc/stat. The lines
have both for each second, and the figures their means from the first dd's start to the last one's
end. These moments are among the figures, so that trace.tsv can be summed up for each place.
"""

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

from contract import start_up
from contract.workload import MEANWHILE
from errors import run_command
from workloads.load_output import SAY_S, SEEN_S, begin_of, end_of, say, write_json
from workloads.memcg import Memcg

PLACES = ("inside", "outside")
IOSTAT = {
    "wrqm": "wrqm/s",
    "w": "w/s",
    "wkb": "wkB/s",
    "wareq": "wareq-sz kB",
    "aqu": "aqu-sz",
    "await": "w_await ms",
    "util": "%util",
}
CPU = {"user": "user", "system": "system", "iowait": "iowait", "idle": "idle"}
SECTOR = 512
EACH_S = 1.0
Counts = dict[str, float]


def device(disk: str) -> Counts:
    """The counts of a block device's writes so far, its sectors, and its times in ms."""
    for line in Path("/proc/diskstats").read_text().splitlines():
        words = line.split()
        if words[2] == disk:
            numbers = [float(word) for word in words[3:]]
            names = ("writes", "merged", "sectors", "write_ms", "", "busy_ms", "weighted_ms")
            return dict(zip(names, numbers[4:], strict=False))
    return {}


def iostat(before: Counts, after: Counts, seconds: float) -> Counts:
    """The columns of IOSTAT between two counts.

    Await and request size only if anything was written.
    """
    if not before or not after or seconds <= 0:
        return {}
    d = {name: after[name] - before[name] for name in before}
    columns = {
        "wrqm": d["merged"] / seconds,
        "w": d["writes"] / seconds,
        "wkb": d["sectors"] * SECTOR / 1024 / seconds,
        "aqu": d["weighted_ms"] / 1000 / seconds,
        "util": 100 * d["busy_ms"] / 1000 / seconds,
    }
    if d["writes"]:
        columns["wareq"] = d["sectors"] * SECTOR / 1024 / d["writes"]
        columns["await"] = d["write_ms"] / d["writes"]
    return columns


def cpu_ticks() -> list[int]:
    """The ticks of all CPUs so far: user, nice, system, idle, iowait, irq, softirq, steal."""
    return [int(word) for word in Path("/proc/stat").read_text().split("\n")[0].split()[1:9]]


def cpu_shares(before: list[int], after: list[int]) -> Counts:
    """The columns of CPU between two counts of ticks, in percent; system includes interrupts."""
    user, nice, system, idle, iowait, irq, softirq, steal = (
        max(0, b - a)  # iowait may go back
        for a, b in zip(before, after, strict=True)
    )
    total = user + nice + system + idle + iowait + irq + softirq + steal
    if not total:
        return {}
    shares = {
        "user": user + nice,
        "system": system + irq + softirq,
        "iowait": iowait,
        "idle": idle,
    }
    return {name: 100 * ticks / total for name, ticks in shares.items()}


class Moment:
    """The counts of device and CPU at one moment (monotonic seconds)."""

    def __init__(self, disk: str) -> None:
        self.device, self.ticks, self.now = device(disk), cpu_ticks(), time.monotonic()

    def columns(self, since: "Moment") -> Counts:
        """The columns of IOSTAT and CPU between `since` and this moment."""
        of_device = iostat(since.device, self.device, self.now - since.now)
        return of_device | cpu_shares(since.ticks, self.ticks)


class Load:
    """Runs the dd's of each place. figures: those measured so far; failed: whether a dd failed."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._options = options
        self._group = Memcg(options.group, options.old)
        self._most = [0, 0]
        self.figures: dict[str, float] = {}
        self.failed = False

    def write(self, place: str) -> None:
        """Run all dd's of a place to their end, then remove their files."""
        o = self._options
        files = [o.folder / f"f{n}" for n in range(1, o.writers + 1)]
        # Let the observers take a sample first: it holds what came before.
        time.sleep(SEEN_S)
        self.figures[begin_of(place)] = time.monotonic()
        since = last = Moment(o.disk)
        before, began = since.device, since.now
        running = {n: self._dd(place, path) for n, path in enumerate(files, 1)}
        last_line_at = began
        while running:
            time.sleep(0.1)
            now = time.monotonic()
            for n, dd in list(running.items()):
                if dd.poll() is not None:
                    del running[n]
                    self._ended(place, n, dd.returncode, now - began)
            self._look()
            if now - last_line_at >= SAY_S:
                last_line_at = now
                written = sum(path.stat().st_size for path in files if path.exists())
                say(f"{place}: {written >> 20} MiB written in {now - began:.1f} s")
            if now - last.now >= EACH_S:
                last, before_that = Moment(o.disk), last
                columns = last.columns(before_that).items()
                words = [f"{name}-{place}={value:.4g}" for name, value in columns]
                say(" ".join([MEANWHILE, *words]))
        ended = Moment(o.disk)
        seconds = ended.now - began
        self.figures[end_of(place)] = ended.now
        self.figures |= {f"{name}-{place}": value for name, value in ended.columns(since).items()}
        if all(f"time-{place}-{n}" in self.figures for n in range(1, o.writers + 1)):
            self.figures[f"time-{place}"] = seconds
            self.figures[f"rate-{place}"] = o.writers * o.mib * 1.048576 / seconds
        os.sync()
        if before and (after := device(o.disk)):
            sectors = after["sectors"] - before["sectors"]
            self.figures[f"synced-{place}"] = sectors * SECTOR / (1 << 20)
        for path in files:
            path.unlink(missing_ok=True)
        os.sync()

    def write_figures(self) -> None:
        """Write the figures so far; the file is replaced as a whole."""
        killed = self._group.killed()
        if killed is not None:
            self.figures["killed-inside"] = killed
        self.figures["version"] = 2 - self._options.old
        write_json(self.figures, self._options.figures)

    def _dd(self, place: str, path: Path) -> "subprocess.Popen[bytes]":
        command = ["dd", "if=/dev/zero", f"of={path}", "bs=1k", f"count={self._options.mib << 10}"]
        joining = self._group.joining() if place == "inside" else ()
        return subprocess.Popen([*joining, *command], stderr=subprocess.DEVNULL)

    def _ended(self, place: str, n: int, status: int, seconds: float) -> None:
        if status:
            self.failed = True
            say(f"{place}: dd {n} ended with status {status} after {seconds:.1f} s")
            return
        rate = self._options.mib * 1.048576 / seconds
        say(f"{place}: dd {n} done after {seconds:.1f} s, {rate:.1f} MB/s")
        self.figures[f"time-{place}-{n}"] = seconds
        self.figures[f"rate-{place}-{n}"] = rate

    def _look(self) -> None:
        now = self._group.dirty_and_writeback()
        if now is not None:
            self._most = [max(pair) for pair in zip(self._most, now, strict=True)]
            self.figures["dirty-most"] = self._most[0] / (1 << 20)
            self.figures["writeback-most"] = self._most[1] / (1 << 20)


def main(argv: list[str]) -> int:
    """The command: run the dd's of each place; returns its exit status."""
    parser = argparse.ArgumentParser(prog="python3 -m workloads.memcg_dirty_load")
    for name in ("--group", "--folder", "--figures"):
        parser.add_argument(name, type=Path, required=True)
    parser.add_argument("--old", action="store_true", help="the group is of version 1")
    parser.add_argument("--disk", required=True)
    parser.add_argument("--mib", type=int, required=True)
    parser.add_argument("--writers", type=int, required=True)
    parser.add_argument("--wait", action="store_true")
    options = parser.parse_args(argv)
    load = Load(options)
    if options.wait:
        start_up.wait()
    for place in PLACES:
        load.write(place)
        load.write_figures()
    return int(load.failed)


if __name__ == "__main__":
    sys.exit(run_command("memcg_dirty_load", lambda: main(sys.argv[1:])))
