# SPDX-License-Identifier: GPL-2.0-or-later
"""run_test.sh --bisect: finds the commit between two kernels, and confirms it."""

import shlex
import sys
import time
from dataclasses import replace

from contract import checkout
from contract.options import Options
from errors import Exit, UserError, run_command
from run import arguments, clock, demands, machine_lock
from run.bisect import opening, report
from run.bisect.findings import WORSE
from run.bisect.options import BisectRequest, parse
from run.bisect.state import State
from run.bisect.whole import Bisect, Interrupted
from run.identity import identified
from run.jobs.stop_signals import Stopped
from run.main import begin
from run.preparation import say
from vm.qemu import GUEST


def not_worse(found: State) -> str:
    """The message that there is nothing to search, and why."""
    ends = found.ends
    text = f"{found.bad} is {ends['verdict']} against {found.good}: there is nothing to search. "
    if ends["verdict"] == WORSE:
        text = "No run of the ends was done, and a search needs such runs (--timeout S: longer). "
    text += str(ends["sentence"])
    if ends["verdict"] == "undecided" and ends["more_runs"]:
        text += f" About {ends['more_runs']} more runs of each would decide."
    return text


def options_of(asked: BisectRequest) -> Options:
    """The options of every run; UserError (2) if they give more than one variant."""
    options = arguments.parse([*asked.options, "--kernel", "debian:stable"])
    if len(options.variants) != 1:
        raise UserError("a bisect has one way to run a kernel: give --swap once", status=Exit.USAGE)
    return options


def main() -> int:
    """Run the bisect of the command line; returns the exit status."""
    argv = sys.argv[1:]
    asked = parse(argv)
    options = options_of(asked)
    stamp = time.strftime("%Y-%m-%d-%H%M%S")
    folder = (asked.folder or checkout.ROOT / "results" / f"{stamp}-bisect").absolute()
    options = identified(replace(options, out=str(folder)))
    demands.check(options)
    begin(options)
    stopped = Stopped()
    shared = clock.expected_clock(options) == GUEST
    with machine_lock.held(shared, say) as machine, machine_lock.campaign(folder):
        known = opening.opened(asked, folder, options.mirror)
        bisect = Bisect(asked, folder, options, known, stopped)
        status = Exit.OK
        try:
            bisect.prepare(machine)
            with stopped.armed():
                if bisect.ends():
                    bisect.search()
                else:
                    say(not_worse(bisect.state))
        except (Interrupted, KeyboardInterrupt):
            status = Exit.INTERRUPTED
        finally:
            bisect.save()
            bisect.close()
    text = report.write(folder, bisect.state)
    say(f"\n{text.rstrip()}\n\nAll of it is in {folder}")
    if status == Exit.INTERRUPTED:
        say(f"interrupted; to go on:\n  ./run_test.sh --resume {shlex.quote(str(folder))}")
    return int(status)


if __name__ == "__main__":
    sys.exit(run_command("run_test.sh", main))
