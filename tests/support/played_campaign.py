# SPDX-License-Identifier: GPL-2.0-or-later
"""python3 -m tests.support.played_campaign FOLDER WHERE RUNS: a campaign on hosts that play.

Its guests are small files; all else is what run_test.sh --on does. WHERE: as --on has it.
"""

import sys
from pathlib import Path

from benchmarks.fleet import played_jobs
from benchmarks.fleet.short_waits import shorten_waits
from run.arguments import parse
from run.campaign import Campaign
from run.hosts import opening
from run.jobs.stop_signals import Stopped
from run.preparation import PreparedVariant
from run.runner import Outcome, Runner

KERNELS = ("--kernel", "debian:6.12", "--kernel", "debian:7.2")


def go(folder: Path, where: str, runs: int, stopped: Stopped) -> Outcome:
    """The campaign, from its beginning or where it was."""
    there = (folder / "plan.toml").exists()
    argv = [*(["--resume"] if there else ["--out"]), str(folder), *KERNELS, "--runs", str(runs)]
    options = parse([*argv, "--profile", "quick"])
    campaign = Campaign(options, argv)
    guests = {one.kernel: played_jobs.guest(one.kernel[7:]) for one in options.variants}
    found = [(one, guests[one.kernel].kernel) for one in options.variants]
    ready = {one.label: PreparedVariant(one, guests[one.kernel]) for one in campaign.enter(found)}
    chosen = opening.chosen(["--on", where] if where else [], folder)
    entered = list(ready.values())
    opening.check(chosen, options, [one.guest.timing.clock for one in entered])
    with opening.workers(chosen, folder, options, entered, stopped) as workers, stopped.armed():
        return Runner(options, campaign, ready, workers, stopped).go()


if __name__ == "__main__":
    shorten_waits()
    outcome = go(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), Stopped())
    print(f"states: {' '.join(outcome.states)}; left: {outcome.left or 'nothing'}")
