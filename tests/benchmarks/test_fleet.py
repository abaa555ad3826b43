# SPDX-License-Identifier: GPL-2.0-or-later
"""The benchmark of a campaign in Slurm, small: all is done, and Slurm is not asked too often."""

import subprocess
import sys
from pathlib import Path

SUITE = Path(__file__).resolve().parents[2]


def test_a_small_campaign_is_done_and_asks_slurm_seldom() -> None:
    command = [sys.executable, "-m", "benchmarks.fleet", "--runs", "60", "--slots", "8"]
    done = subprocess.run(command, cwd=SUITE, capture_output=True, text=True, check=True)
    lines = [line.split() for line in done.stdout.splitlines()]
    found = {name: float(value.replace(",", "")) for name, value in lines}
    assert found["runs"] == 60 and found["slots"] == 8
    assert 0 < found["last_submitted_h"] <= found["campaign_h"]
    # Every 5 s of the simulated clock, and so each array.
    assert found["squeue_per_min"] <= 13 and found["sbatch_per_min"] <= 13
