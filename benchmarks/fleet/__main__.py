# SPDX-License-Identifier: GPL-2.0-or-later
"""python3 -m benchmarks.fleet: how much 10,000 runs in 64 Slurm slots cost the driver.

The driver is the real one, with its folders and files. Slurm and its nodes are simulated, on a
clock that only advances while the driver sleeps, so that the driver polls as often as in a real
campaign. Runs take 2 to 4 minutes of that clock.
"""

import argparse
import contextlib
import io
import os
import resource
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.fleet import played_jobs
from benchmarks.fleet.short_waits import shorten_waits
from benchmarks.fleet.simulated_queue import SimulatedClock, SimulatedQueue
from contract.values import count
from run import runner
from run.arguments import parse
from run.campaign import Campaign
from run.hosts import kept
from run.hosts.kept import Kept, RunHosts
from run.jobs import elsewhere
from run.preparation import PreparedVariant
from run.run_folders import completed
from run.runner import Runner
from run.slurm import arrays, options, slurm_workers
from run.slurm.slurm_workers import SlurmWorkers

VARIANTS = 20
SHORTEST_S, LONGEST_S = 120.0, 240.0


def measure(folder: Path, runs: int, slots: int) -> dict[str, float]:
    """Do a campaign of `runs` runs; returns its figures, whose names end in their units."""
    os.environ["XDG_CACHE_HOME"] = str(folder / "cache")
    shorten_waits()
    clock = SimulatedClock()
    for module in (runner, slurm_workers, elsewhere):
        vars(module)["time"] = clock
    slurm_workers.LOOK_S = slurm_workers.SUBMIT_S = 5.0
    kernels = [word for n in range(VARIANTS) for word in ("--kernel", f"debian:6.{n}")]
    out = folder / "c"
    argv = [*kernels, "--runs", str(runs // VARIANTS), "--profile", "quick", "--out", str(out)]
    chosen = parse(argv)
    campaign = Campaign(chosen, argv)
    guests = {variant.kernel: played_jobs.guest(variant.kernel[7:]) for variant in chosen.variants}
    entered = campaign.enter(
        [(variant, guests[variant.kernel].kernel) for variant in chosen.variants]
    )
    ready = {variant.label: PreparedVariant(variant, guests[variant.kernel]) for variant in entered}
    queue = SimulatedQueue(out, clock, slots, SHORTEST_S, LONGEST_S)
    submitted = arrays.Arrays(options.parse("slurm"), out, Path("/suite"), played_jobs.job())
    noted = RunHosts(Kept("slurm"), out)
    began = time.process_time()
    workers = SlurmWorkers(queue, slots, "name", out, submitted, noted.note)
    # Drop the lines that the driver prints for each run.
    with contextlib.redirect_stdout(io.StringIO()):
        Runner(chosen, campaign, ready, workers, lambda: False).go()
    workers.close()
    noted.keep()
    cpu = time.process_time() - began - queue.spent
    before = kept.read(out)
    done = sum(len(completed(out / label)) for label in ready)
    assert before is not None and len(before.runs) == done == runs // VARIANTS * VARIANTS
    minutes = clock.now / 60
    return {
        "runs": done,
        "slots": slots,
        "campaign_h": clock.now / 3600,
        "last_submitted_h": queue.submitted_last / 3600,
        "ideal_h": done * (SHORTEST_S + LONGEST_S) / 2 / slots / 3600,
        "driver_cpu_s": cpu,
        "driver_cpu_percent": 100 * cpu / clock.now,
        "peak_rss_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "sbatch_per_min": queue.calls["sbatch"] / minutes,
        "squeue_per_min": queue.calls["squeue"] / minutes,
        "plan_toml_kib": (out / "plan.toml").stat().st_size / 1024,
    }


def main() -> int:
    """Print the figures, one per line; returns the exit status."""
    parser = argparse.ArgumentParser(prog="benchmarks.fleet", description=__doc__)
    parser.add_argument(
        "--runs", type=count, default=10_000, help="number of runs (default: 10000)"
    )
    parser.add_argument(
        "--slots", type=count, default=64, help="number of simultaneous runs (default: 64)"
    )
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for name, value in measure(Path(folder), given.runs, given.slots).items():
            print(f"{name:<20} {value:>12,.1f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
