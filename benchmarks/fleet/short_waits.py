# SPDX-License-Identifier: GPL-2.0-or-later
"""A played campaign sends small files and polls often."""

import os

from benchmarks.fleet import played_jobs
from run.hosts import proof, ssh, ssh_workers
from run.hosts.ssh_workers import SshWorkers
from run.jobs import elsewhere
from run.slurm import controller, slurm_workers
from run.slurm.slurm_workers import SlurmWorkers
from setup.userland import tools

PATIENCE_S = 600.0


def shorten_waits() -> None:
    """Send a host one small file instead of the tools; poll often; wait for ten minutes at most."""
    root = played_jobs.in_cache("tools/x/file", "tools").parent
    tools.root = lambda mirror=None: root
    proof.POLL_S = ssh_workers.LOOK_S = slurm_workers.LOOK_S = 1.0
    # However slow this machine is: what it does late is done.
    ssh.CALL_S = controller.ANSWER_S = elsewhere.KNOWN_S = PATIENCE_S
    SshWorkers.end_s = SlurmWorkers.end_s = PATIENCE_S
    slurm_workers.SUBMIT_S, slurm_workers.SETTLE_S = 0.5, 5.0
    ssh_workers.LOST_S = float(os.environ.get("PLAYED_LOST_S", ssh_workers.LOST_S))
