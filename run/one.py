# SPDX-License-Identifier: GPL-2.0-or-later
"""python3 -m run.one PLAN VARIANT NUMBER: does one run of a plan of jobs on this machine.

It needs only this suite, python3 and the files of the cache that the plan names. The results are
written to the folder `VARIANT/NUMBER.partial-HOST-JOB` beside PLAN. When the run has ended, this
folder is renamed to `VARIANT/NUMBER`. If the run was cut short, the folder keeps its name, and
status.json in it says why.
"""

import argparse
import os
import sys
from pathlib import Path

from contract.run_files import ABORTED, HUNG, LOST, PANICKED, UNFINISHED
from contract.values import count
from errors import Exit, UserError, printable, run_command
from run import machine_lock
from run.jobs import plan_file, run_copies, work
from run.jobs.job import Job
from run.jobs.stop_signals import Stopped
from run.live import View
from setup import cache
from vm import session
from vm.qemu import GUEST

STATUS_OF = {ABORTED: Exit.MISSING, UNFINISHED: Exit.UNFINISHED}
STATUS_OF |= dict.fromkeys((HUNG, PANICKED, LOST), Exit.KERNEL_LOST)


class Log:
    """Prints a run's lines on stdout; shows no tables."""

    live = False

    def add(self, shown: View) -> None:
        """Do nothing: no tables are shown."""

    def remove(self, shown: View) -> None:
        """Do nothing: no tables are shown."""

    def update(self) -> None:
        """Do nothing: no tables are shown."""

    def say(self, text: str) -> None:
        """Print a line."""
        print(printable(text), flush=True)


def do(job: Job, folder: Path, host: str, name: str, stopped: Stopped) -> Exit:
    """Do the run in a results folder; returns the exit status.

    UserError if it could not begin, or if another copy of it exists and differs.
    """
    run = folder / job.label / str(job.number)
    if run.exists():
        print(f"{run}: is there already")
        return Exit.OK
    with run_copies.partial(run.parent, job.number, host, name) as made:
        # Shared with runs on guests' clocks only.
        own_clock = job.guest.timing.clock == GUEST
        with machine_lock.held(own_clock, print) as machine, stopped.armed():
            if own_clock:
                machine.share()
            state, why = work.do(job, made, Log(), stopped, beside_others=False)
        print(printable(f"{run}: {state}: {why}"), flush=True)
        if state != ABORTED:
            differing = run_copies.settle(made, run)
            if differing:
                raise UserError(run_copies.difference_told(run, differing))
            if differing is not None:
                print(f"{run}: a second copy, the same bytes as the first")
    return Exit.INTERRUPTED if stopped() else STATUS_OF.get(state, Exit.OK)


def main() -> int:
    """Parse the command line and do the run."""
    parser = argparse.ArgumentParser(prog="run.one", description=__doc__)
    plan = "a plan of jobs (docs/guides/fleet.md)"
    parser.add_argument("plan", type=Path, metavar="PLAN", help=plan)
    parser.add_argument("variant", metavar="VARIANT", help="the label of a variant in it")
    parser.add_argument("number", type=count, metavar="NUMBER", help="which of its runs")
    parser.add_argument(
        "--host", default=run_copies.this_host(), help="HOST (default: this machine's name)"
    )
    parser.add_argument("--job", default=str(os.getpid()), help="JOB (default: the process's id)")
    given = parser.parse_args()
    cache.sweep(session.SCRATCH)
    job = plan_file.read(given.plan, given.variant, given.number)
    return int(do(job, given.plan.absolute().parent, given.host, given.job, Stopped()))


if __name__ == "__main__":
    sys.exit(run_command("run.one", main))
