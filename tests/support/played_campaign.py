# SPDX-License-Identifier: GPL-2.0-or-later
"""python3 -m tests.support.played_campaign FOLDER WHERE RUNS: a campaign on hosts that play.

Its guests are small files; all else is what run_test.sh --on does. WHERE: as --on has it.
"""

import os
import sys
from pathlib import Path

from run.arguments import parse
from run.campaign import Campaign
from run.hosts import opening, proof, ssh, ssh_workers
from run.hosts.ssh_workers import SshWorkers
from run.jobs import elsewhere
from run.jobs.stop_signals import Stopped
from run.preparation import PreparedVariant
from run.runner import Outcome, Runner
from run.slurm import controller, slurm_workers
from run.slurm.slurm_workers import SlurmWorkers
from setup.userland import tools
from tests.support import played_jobs

PATIENCE_S = 600.0
KERNELS = ("--kernel", "debian:6.12", "--kernel", "debian:7.2")


def small_parts() -> None:
    """What a host is sent beside a guest's files is small, too."""
    root = played_jobs.in_cache("tools/x/file", "tools").parent
    tools.root = lambda mirror=None: root
    proof.POLL_S = ssh_workers.LOOK_S = slurm_workers.LOOK_S = 1.0
    # However slow this machine is: what it does late is done.
    ssh.CALL_S = controller.ANSWER_S = elsewhere.KNOWN_S = PATIENCE_S
    SshWorkers.end_s = SlurmWorkers.end_s = PATIENCE_S
    slurm_workers.SUBMIT_S, slurm_workers.SETTLE_S = 0.5, 5.0
    ssh_workers.LOST_S = float(os.environ.get("PLAYED_LOST_S", ssh_workers.LOST_S))


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
    small_parts()
    outcome = go(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), Stopped())
    print(f"states: {' '.join(outcome.states)}; left: {outcome.left or 'nothing'}")
