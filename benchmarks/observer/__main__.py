# SPDX-License-Identifier: GPL-2.0-or-later
"""How accurate the observers are, in one table from one run: `python3 -m benchmarks.observer`.

Takes run_test.sh's options (default: the standard test). It runs a VM as run_test.sh does, in
which in_guest.py adds a stall of known length and a naive monitor. Output: the table; the run's
files stay in results/observer/. Under emulation the guest's CPUs are many times slower than the
host's: the observers' cost at the host's speed is estimated from two of their tasks.
"""

import sys
from pathlib import Path
from typing import Any

from benchmarks.observer.pace import paces
from contract.run_files import COMPLETED, EVENTS
from contract.run_record import read_events
from errors import UserError, run_command
from run import machine_lock
from run.arguments import parse
from run.jobs.stop_signals import Stopped
from run.live import View
from run.measure_command import guest_job
from run.preparation import make_ready
from run.screen import Screen
from vm import session
from vm.qemu import GUEST
from workloads.registry import stream_names

SUITE = Path(__file__).resolve().parents[2]


def rows(run_dir: Path, cpus: int, host: dict[str, float]) -> list[tuple[str, str, str]]:
    """The table's rows (what, target, measured); host: paces() of this machine, in us."""
    events = read_events(run_dir / EVENTS)
    named = {event["event"]: event for event in events}
    if "benchmark" not in named:
        raise UserError(f"the guest did not finish the benchmark: see {run_dir}/console.log")
    bench = named["benchmark"]
    observers = {e["name"]: e for e in events if e["event"] == "observer"}
    elapsed = named["end"]["elapsed"]
    share = sum(o["cpu_s"] for o in observers.values()) / (elapsed * cpus)
    locked = sum(o["locked_kib"] for o in observers.values()) / 1024
    vmlck = sum(o["vmlck_kib"] for o in observers.values()) / 1024
    sampler = observers["sampler"]
    if (evidence := observers.get("evidence")) is None:
        raise UserError("the evidence observer did not run", hint="leave --no-evidence out")
    header, *samples = (run_dir / "vmstat.tsv").read_text().splitlines()
    late = [float(row.split("\t")[header.split("\t").index("late_s")]) for row in samples]
    naive = bench["naive"]
    guest = bench["pace"]
    freeze = worst_gap(run_dir)

    def stall(stops: list[dict[str, float]], part: str) -> str:
        worst = max(abs(stop[part] - (2.0 if part == "recorded" else 0)) for stop in stops)
        return f"{1000 * worst:.1f} ms worst of {len(stops)}"

    def pair(of: str) -> str:
        return f"{guest[of]:.0f} us in the guest, {host[of]:.0f} us on the host"

    return [
        ("worst gitk gap of this run", "(a freeze)", f"{freeze:.1f} s"),
        ("2.000 s stall, idle: recorded - 2.000", "<= 5 ms", stall(bench["idle"], "recorded")),
        ("2.000 s stall, freeze: recorded - 2.000", "<= 5 ms", stall(bench["freeze"], "recorded")),
        ("  same, recorded - victim's own clock", "", stall(bench["freeze"], "error")),
        ("sampler's worst lateness", "<= 0.020 s", f"{max(late):.3f} s of {len(late)} samples"),
        ("naive 1 Hz loop's worst lateness", "", f"{naive['worst_late_s']:.2f} s"),
        (
            "evidence's worst lateness",
            "<= 0.020 s",
            f"{evidence['worst_late_s']:.3f} s of {evidence['samples']} samples",
        ),
        ("CPU a sample: evidence", "", f"{1e6 * evidence['cpu_s'] / evidence['samples']:.0f} us"),
        ("CPU a sample: sampler", "", f"{1e6 * sampler['cpu_s'] / len(late):.0f} us"),
        ("CPU a sample: naive loop", "", f"{naive['cpu_us']:.0f} us"),
        ("CPU of a bare read of /proc/vmstat", "", pair("read_us")),
        ("CPU of Python with 400 lines of a table", "", pair("python_us")),
        ("locked memory of all observers", "<= 8 MiB", f"{locked:.1f} MiB (VmLck {vmlck:.1f})"),
        ("CPU of all observers", "<= 1 %", f"{100 * share:.2f} % of {cpus} CPUs"),
        (
            "  at the host's pace of these two",
            "<= 1 %",
            " and ".join(f"{100 * share * host[of] / guest[of]:.2f} %" for of in host),
        ),
    ]


def worst_gap(run_dir: Path) -> float:
    """The longest gap of any gitk, in seconds."""
    gaps: list[float] = []
    for log in run_dir.glob("latency-gitk-*.log"):
        gaps += [float(line.split(" ", 2)[1]) for line in log.read_text().splitlines()]
    return max(gaps)


def main() -> int:
    """Do the run and print the table; returns the exit status."""
    options = parse(sys.argv[1:])
    run_dir = SUITE / "results" / "observer"
    run_dir.mkdir(parents=True, exist_ok=True)
    stopped = Stopped()
    with machine_lock.held(options.clock != "host", print) as machine:
        ((variant, guest),) = make_ready(options)
        if guest.timing.clock == GUEST:
            machine.share()
        else:
            machine.keep()
        facts: dict[str, Any] = {"label": "observer", "variant": "observer"}
        facts["parameters"] = options.parameters
        screen = Screen()
        view = View(
            "observer",
            screen,
            run_dir,
            stream_names(options),
            options.commits,
            options.passes,
            limit_s=options.timeout,
            own_clock=guest.timing.clock == GUEST,
        )
        with screen, view, stopped.armed():
            state, why = session.run(
                guest,
                guest_job(
                    options,
                    variant,
                    "python3 -m benchmarks.observer.in_guest",
                    clock=guest.timing.clock,
                ),
                run_dir,
                tick=view.tick,
                stopped=stopped,
                facts=facts,
            )
    if state != COMPLETED:
        raise UserError(f"the run did not complete: {state}: {why}")
    print(f"{guest.kernel.release}, {guest.accel}, {options.cpus} CPUs, {options.memory >> 20} MiB")
    for what, target, measured in rows(run_dir, options.cpus, paces()):
        print(f"{what:42} {target:12} {measured}")
    return 0


if __name__ == "__main__":
    sys.exit(run_command("benchmarks.observer", main))
