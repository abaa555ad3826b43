# SPDX-License-Identifier: GPL-2.0-or-later
"""How much the evidence observer slows the workload down: `python3 -m benchmarks.evidence DIR …`.

Runs ./run_test.sh with the other options, N times with evidence and N times with --no-evidence,
alternating, each as a campaign of its own below DIR. Complete runs are kept: the same command
resumes after an interruption. Output: the elapsed seconds of all runs, and the ratio of the medians
with its 95 % bootstrap interval. Target: at most 1.03.
"""

import argparse
import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np

from contract.run_files import COMPLETED
from errors import UserError, run_command

SUITE = Path(__file__).resolve().parents[1]
RESAMPLES = 20_000
KINDS = {"with": [], "without": ["--no-evidence"]}


def elapsed(campaign: Path) -> float | None:
    """The seconds of the workload in a campaign's only run; None if it did not complete."""
    for path in campaign.glob("*/1/status.json"):
        status = json.loads(path.read_text())
        if status["state"] == COMPLETED:
            return float(status["elapsed_s"])
    return None


def observers(campaign: Path) -> dict[str, dict[str, float]]:
    """Each observer's cost (cpu_s, elapsed_s, locked_kib, …), by its name."""
    (path,) = campaign.glob("*/1/meta.json")
    return {facts["name"]: facts for facts in json.loads(path.read_text())["observers"]}


def run(campaign: Path, argv: list[str]) -> float:
    """The elapsed seconds of one run, which is done now unless it is already complete."""
    if (done := elapsed(campaign)) is not None:
        return done
    if campaign.exists():
        shutil.rmtree(campaign)
    command = [str(SUITE / "run_test.sh"), "--no-install", *argv, "--out", str(campaign)]
    subprocess.run(command, stdout=subprocess.DEVNULL, check=False)
    done = elapsed(campaign)
    if done is None:
        raise UserError(f"{campaign}: the run did not complete", hint="see its console.log")
    return done


def interval(sample: list[float], base: list[float]) -> tuple[float, float, float]:
    """The ratio of the medians, and the bounds of its 95 % percentile bootstrap interval."""
    rng = np.random.default_rng(1)
    medians = [
        np.median(rng.choice(values, (RESAMPLES, len(values))), axis=1) for values in (sample, base)
    ]
    low, high = np.quantile(medians[0] / medians[1], (0.025, 0.975))
    return float(np.median(sample) / np.median(base)), float(low), float(high)


def main() -> int:
    """Do the missing runs and print the table; returns the exit status."""
    parser = argparse.ArgumentParser(prog="benchmarks.evidence", description=__doc__)
    parser.add_argument("folder", type=Path, metavar="DIR")
    parser.add_argument("--runs", type=int, default=5, metavar="N")
    given, argv = parser.parse_known_args()
    seconds: dict[str, list[float]] = {kind: [] for kind in KINDS}
    for number in range(1, given.runs + 1):
        # with, without, without, with, …: a slow drift affects both alike
        for kind in sorted(KINDS, reverse=number % 2 == 0):
            campaign = given.folder / f"{kind}-{number}"
            seconds[kind].append(run(campaign, [*argv, *KINDS[kind]]))
            print(f"{campaign.name}: {seconds[kind][-1]:.1f} s", flush=True)
    ratio, low, high = interval(seconds["with"], seconds["without"])
    for kind, values in seconds.items():
        print(f"{kind:8} median {np.median(values):.1f} s of {len(values)} runs")
    print(f"ratio of the medians: {ratio:.3f} (95 % interval {low:.3f} to {high:.3f})")
    costs = [observers(given.folder / f"with-{n}") for n in range(1, given.runs + 1)]
    for name in costs[0]:
        share = [100 * cost[name]["cpu_s"] / cost[name]["elapsed_s"] for cost in costs]
        locked = max(cost[name]["locked_kib"] for cost in costs)
        print(f"{name:9} {np.median(share):.2f} % of one CPU, {locked / 1024:.1f} MiB locked")
    return 0


if __name__ == "__main__":
    sys.exit(run_command("benchmarks.evidence", main))
