# SPDX-License-Identifier: GPL-2.0-or-later
"""Does one job on this machine."""

from collections.abc import Callable
from pathlib import Path

from run.jobs.job import Job
from run.live import Display, View
from vm import session
from vm.qemu import GUEST


def do(
    job: Job, run: Path, screen: Display, stopped: Callable[[], bool], *, beside_others: bool
) -> tuple[str, str]:
    """Do the run in its folder, which must exist; returns (state, why) as in status.json.

    beside_others: its lines on the screen begin with the run's name.
    """
    with View(
        job.title,
        screen,
        run,
        job.streams.names,
        job.streams.commits,
        job.streams.passes,
        limit_s=job.streams.limit_s,
        own_clock=job.guest.timing.clock == GUEST,
        named=beside_others,
        expected=job.expected,
    ) as view:
        return session.run(
            job.guest,
            job.guest_job,
            run,
            tick=view.tick,
            stopped=stopped,
            facts=dict(job.facts),
            so_far=view.so_far,
        )
