# SPDX-License-Identifier: GPL-2.0-or-later
"""run_test.sh on the host: prepares, runs, reports."""

import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from contract.options import Options
from contract.run_files import ABORTED, HUNG, LOST, PANICKED, REPORT, UNFINISHED
from errors import Exit, UserError, run_command
from run import checks, clock, demands, machine_lock, on_device
from run.arguments import parse
from run.bisect.options import is_asked
from run.campaign import Campaign
from run.changed_kernels import built
from run.estimates import speed_here
from run.hosts import host_list, opening
from run.identity import identified
from run.jobs.stop_signals import Stopped
from run.preparation import PreparedVariant, make_ready, say
from run.run_folders import folder, refuse_another_host
from run.runner import Outcome, Runner
from setup import cache
from vm import probe, session
from vm.guest_facts import host_facts
from vm.qemu import GUEST

KERNEL_LOST = {HUNG, PANICKED, LOST}


def in_vms(
    options: Options,
    stopped: Stopped,
    command: list[str],
    where: str,
    machine: machine_lock.MachineLock,
) -> Outcome:
    """Do all missing runs of the campaign in VMs; where: the value of --on."""
    opened = Campaign(options, command)
    elsewhere = where != host_list.LOCAL
    prepared = make_ready(options, opened.pinned, elsewhere=elsewhere)
    ready = built.without_twins(prepared, opened.stored(), say)
    clocks = [one.guest.timing.clock for one in ready]
    opening.check(where, options, clocks)
    if elsewhere or all(clock == GUEST for clock in clocks):
        machine.share()
    else:
        machine.keep()
    labels = [one.label for one in opened.stored()]
    for one in ready:
        its = options.of(one.variant).workload
        facts = host_facts(one.guest) | ({"host": {}} if elsewhere else {})
        refuse_another_host(opened.path, labels, facts, its)
    variants = opened.enter([(one.variant, one.guest.kernel) for one in ready])
    by_label = {
        variant.label: PreparedVariant(variant, one.guest)
        for variant, one in zip(variants, ready, strict=True)
    }
    entered = list(by_label.values())
    missing = bool(opened.left())
    if missing:
        for warning in [opened.few_runs_warning, *demands.memory_warnings(options)]:
            if warning:
                say(warning)
    doing = opening.workers(where, opened.path, options, entered, stopped, missing=missing)
    with doing as workers:
        if workers.here:
            speed_here.measure(options, entered, workers.slots)
        with stopped.armed():
            outcome = Runner(options, opened, by_label, workers, stopped).go()
    # A requested kernel is missing; a remedy that its kernel does not support is not an error.
    untreated = sum(not one.remedy for one in options.variants)
    if sum(not one.variant.remedy for one in prepared) < untreated:
        outcome.states.append(ABORTED)
    return outcome


def begin(options: Options, *, elsewhere: bool = False) -> None:
    """Remove what killed commands left, check what the options name, treat signals as Ctrl-C.

    elsewhere: other machines do the runs.
    """
    # Before free disk space is checked.
    for kind in (session.SCRATCH, probe.SCRATCH):
        cache.sweep(kind)
    cache.sweep_unfinished()
    if options.device is None:
        checks.check(options, elsewhere=elsewhere)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)


def report(folder: Path, fail_on: Sequence[str] = ()) -> int:
    """Draw the campaign's pictures and print its summary; returns the exit status of `graphs`.

    A separate process, as data flow in one direction only. fail_on: the words of --fail-on.
    """
    summary = folder / REPORT / "summary.txt"
    # If drawing or comparing fails, the runs are still kept, and no old summary is shown.
    try:
        summary.unlink(missing_ok=True)
    except OSError as error:
        say(f"run_test.sh: {summary}: {error.strerror} (the runs are kept; remove what is there)")
        return Exit.MISSING
    command = [sys.executable, "-m", "graphs", str(folder)]
    command += ["--fail-on", ",".join(fail_on)] if fail_on else []
    done = subprocess.run(command, check=False)
    if summary.exists():
        say(f"\n{summary.read_text().rstrip()}")
    return done.returncode


def exit_status(outcome: Outcome, interrupted: bool, drawn: int = Exit.OK) -> Exit:
    """The exit status of run_test.sh; drawn: the status that report() returned."""
    if interrupted:
        return Exit.INTERRUPTED
    if ABORTED in outcome.states:
        return Exit.MISSING
    if KERNEL_LOST & set(outcome.states):
        return Exit.KERNEL_LOST
    if drawn not in (Exit.OK, Exit.FAILED_ON):
        return Exit.MISSING
    if drawn == Exit.OK and UNFINISHED in outcome.states:
        return Exit.UNFINISHED
    return Exit(drawn)


def main() -> int:
    """Run the command line; returns the exit status."""
    argv = sys.argv[1:]
    if is_asked(argv):
        os.execv(sys.executable, [sys.executable, "-m", "run.bisect", *argv])
    options = parse(argv)
    if options.dry_run:
        raise UserError("run.main does runs; ./run_test.sh --dry-run shows them", status=Exit.USAGE)
    demands.check(options)
    options = identified(options)
    # Set once: the default name contains the current time in seconds.
    options = replace(options, out=options.out or str(folder(options)))
    where = host_list.LOCAL if options.device else opening.chosen(argv, folder(options))
    elsewhere = where != host_list.LOCAL
    begin(options, elsewhere=elsewhere)
    stopped = Stopped()
    may_share = elsewhere or clock.expected_clock(options) == GUEST
    with machine_lock.held(may_share, say) as machine:
        if options.device is not None:
            for warning in demands.memory_warnings(options):
                say(warning)
            run_dir, state, why = on_device.run(options, stopped, argv)
            say(f"{run_dir}: {state}: {why}")
            outcome = Outcome(run_dir.parent.parent, [state])
        else:
            with machine_lock.campaign(folder(options)):
                outcome = in_vms(options, stopped, argv, where, machine)
    drawn = report(outcome.folder, options.fail_on)
    if outcome.left:
        say(f"\n{outcome.left}\n  ./run_test.sh --resume {shlex.quote(str(outcome.folder))}")
    return int(exit_status(outcome, stopped(), drawn))


if __name__ == "__main__":
    sys.exit(run_command("run_test.sh", main))
