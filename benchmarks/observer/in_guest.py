# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs in the guest: the standard workload beside a stalling victim and a naive monitor.

Arguments: those of run_test.sh --bare. Writes one `benchmark` event into events.jsonl.
"""

import itertools
import os
import re
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks.observer.pace import paces
from contract.run_files import EVENTS
from contract.run_record import Events
from errors import run_command
from measure import one_run
from monitors.launch import RecorderProcess, in_memory
from monitors.streams import Stream
from run.arguments import parse
from setup.observers import program
from workloads import companions

IDLE_STOPS = 5
NAIVE = (
    "exec 3>/run/naive.log; echo ready; read -r go; "
    "while sleep 1; do date +%s.%N; { date; cat /proc/vmstat; } >&3; times; done"
)


def extra(naive: bool) -> list[Stream]:
    """The streams that the benchmark adds; their logs stay in the guest."""
    env = {"PATH": os.environ["PATH"], "PYTHONPATH": str(companions.SUITE), "LC_ALL": "C.UTF-8"}
    victim = [sys.executable, "-S", "-m", "benchmarks.observer.victim"]
    streams = [Stream("victim", [*victim, "0" if naive else str(IDLE_STOPS)], env, waits=True)]
    if naive:
        streams.append(Stream("naive", ["bash", "-c", NAIVE], env, waits=True))
    return streams


def idle(folder: Path) -> None:
    """Record the victim alone on an idle machine."""
    folder.mkdir()
    recorder = RecorderProcess(
        in_memory(program()), folder, extra(naive=False), until={"victim"}, timeout_s=120
    )
    if recorder.wait() is None:
        raise RuntimeError("the idle recorder died")


def victim_errors(path: Path) -> list[dict[str, float]]:
    """For each stop: the recorder's gap, the victim's own gap, and the difference, in seconds."""
    stops = []
    before = 0.0
    for line in path.read_text().splitlines():
        _, gap, word, *clock = line.split()
        if word == "before":
            before = float(clock[0])
        elif word == "after":
            own = float(clock[0]) - before
            stops.append({"recorded": float(gap), "own": own, "error": float(gap) - own})
    return stops


def naive_figures(path: Path) -> dict[str, Any]:
    """The naive loop's worst lateness (s, for its period of 1 s), samples, and CPU us a sample."""
    dates: list[float] = []
    spent: list[float] = []
    for line in path.read_text().splitlines():
        text = line.split(" ", 2)[2]
        if re.fullmatch(r"\d+\.\d+", text):
            dates.append(float(text))
        else:  # two lines of `times`: the shell's own, its children's
            times = re.findall(r"(\d+)m([\d.]+)s", text)
            spent.append(sum(60 * int(minutes) + float(part) for minutes, part in times))
    rounds = len(spent) // 2
    worst = max(later - earlier for earlier, later in itertools.pairwise(dates)) - 1
    cpu = (spent[2 * rounds - 2] + spent[2 * rounds - 1]) / rounds
    return {"samples": len(dates), "worst_late_s": worst, "cpu_us": 1e6 * cpu}


def main() -> int:
    """Do the idle part, then the workload with both streams beside it; returns the exit status."""
    options = parse(sys.argv[1:])
    run_dir = Path(str(options.run_dir))
    pace = paces()
    time.sleep(2)
    idle(Path("/run/idle"))
    original = companions.programs
    companions.programs = lambda *given: original(*given) + extra(naive=True)
    status = one_run.run(options)
    Events(run_dir / EVENTS).write(
        "benchmark",
        idle=victim_errors(Path("/run/idle/latency-victim.log")),
        freeze=victim_errors(run_dir / "latency-victim.log"),
        naive=naive_figures(run_dir / "latency-naive.log"),
        pace=pace,
    )
    return status


if __name__ == "__main__":
    sys.exit(run_command("in_guest", main))
