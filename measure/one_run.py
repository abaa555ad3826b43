# SPDX-License-Identifier: GPL-2.0-or-later
"""Measures one run on the machine it runs on: builds the stack, records the workload, undoes all.

It works the same in a guest and on a real machine, and uses only the standard library. The
observers are separate processes (monitors.launch); this process only waits while they work, and
may be swapped out like any other.
"""

import contextlib
import json
import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from contract.command_line import parse_measured
from contract.options import Options
from contract.run_files import ABORTED, COMPLETED, EVENTS, HUNG, OOM, UNFINISHED
from contract.run_record import Events
from contract.variant import Variant
from errors import Exit, UserError, run_command
from measure import (
    delay_accounting,
    disks,
    echo_check,
    key_programs,
    knobs,
    machine_facts,
    outcome,
    swap_facts,
)
from measure.observers import Observers
from measure.observing_cost import clean_page_cache, cost, read_memory
from monitors.launch import RecorderProcess
from monitors.streams import AnyProgram
from setup.crypt_lvm import activation, mapper, ownership, stack_build
from setup.crypt_lvm.stack import Stack
from setup.observers import program
from workloads import companions, registry, x_server
from workloads.workload import WorkloadEnvironment

SCRATCH = activation.MOUNT
# From telling the first observer when the workload begins to its begin: to tell the others, this
# process itself may have to be swapped in (0.8 s on 6.17).
AHEAD_S = 2.0
FIGURES = mapper.RUN / "figures.json"  # in memory, like all files in that folder


class Interrupted(Exception):
    """A signal asked the run to end."""


class Stop:
    """Turns the first SIGINT, SIGTERM or SIGHUP into an Interrupted; ignores those that follow.

    Once `late` is set, it raises nothing and only remembers the wish.
    """

    def __init__(self) -> None:
        self.wished = False
        self.late = False
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self._handle)

    def _handle(self, number: int, frame: Any) -> None:
        first, self.wished = not self.wished, True
        if first and not self.late:
            raise Interrupted(signal.Signals(number).name)


class Verdict:
    """How the run ended, written as the `status` event: the first verdict stays."""

    def __init__(self, events: Events) -> None:
        self._events = events
        self.state = ""

    def say(self, state: str, why: str) -> None:
        """Write the verdict, unless there is one already."""
        if not self.state:
            self.state = state
            self._events.write("status", state=state, why=why)


def run(options: Options) -> int:
    """Measure; returns run_test.sh --bare's exit status.

    The status event says how the run ended.
    """
    if os.geteuid() != 0:
        raise UserError("--device needs root", hint="run it with sudo")
    assert options.device is not None and options.run_dir is not None
    run_dir = Path(options.run_dir)
    run_dir.mkdir(parents=True, exist_ok=True)
    events = Events(run_dir / EVENTS)
    verdict = Verdict(events)
    stop = Stop()
    try:
        _stages(options, run_dir, events, verdict, stop)
    except Interrupted as error:
        verdict.say(ABORTED, f"interrupted by {error}")
    except UserError as error:
        verdict.say(ABORTED, str(error))
        raise
    except BaseException as error:
        verdict.say(ABORTED, f"{type(error).__name__}: {error}")
        raise
    finally:
        events.close()
    if stop.wished:
        return int(Exit.INTERRUPTED)
    if verdict.state == UNFINISHED:
        return int(Exit.UNFINISHED)
    return int(Exit.OK if verdict.state in (COMPLETED, OOM) else Exit.KERNEL_LOST)


def _stages(options: Options, run_dir: Path, events: Events, verdict: Verdict, stop: Stop) -> None:
    assert options.device is not None
    program()  # before anything is touched
    chosen = registry.find(options.workload)
    chosen.check_commands(options.screen)
    more = disks.more_disks(chosen)
    events.write("phase", name="prepare")
    events.write("meta", workload=chosen.describe(options).as_meta(), **machine_facts.facts())
    events.write("phase", name="crypt")
    with ownership.prepared(
        options.device,
        fs=options.fs,
        crypt=options.crypt,
        swap_bytes=stack_build.SWAP_BYTES,
        mount=SCRATCH,
        destroy_data=options.destroy_data,
        swap=options.variants[0].swap,
    ) as stack:
        events.write("meta", **disks.stack_facts(stack, options))
        events.write("phase", name="fill")
        environment = WorkloadEnvironment(
            SCRATCH, disks.watched(stack)["disk"], FIGURES, tuple(more.values())
        )
        with (
            chosen.prepared(options, environment),
            x_server.running(x_server.key_file(environment), waiting=options.screen)
            if options.screen or chosen.in_windows
            else contextlib.nullcontext(),
            delay_accounting.switched_on(events),
            knobs.applied(options.variants[0].knobs, disks.watched(stack)) as applied,
            remedy_applied(options.variants[0], events),
        ):
            (SCRATCH / companions.MUSIC).mkdir()
            events.write("meta", knobs=applied)
            events.write("phase", name="workload")
            state, why = workload(
                options, run_dir, events, stack, environment, disks.watched(stack) | more
            )
            # The run has ended: a signal from now on changes neither its verdict nor the teardown.
            stop.late = True
            verdict.say(state, why)
        events.write("phase", name="teardown")


@contextlib.contextmanager
def remedy_applied(variant: Variant, events: Events) -> Iterator[None]:
    """Apply the variant's remedy for the time of the run.

    Writes the facts about it to meta.json.
    """
    if not variant.remedy:
        yield
        return
    from measure import remedy  # not at the top: a run without a remedy spends no memory on it

    with remedy.around(variant) as facts:
        events.write("meta", remedy=facts)  # early, for runs that do not reach their end
        yield
    events.write("meta", remedy=facts)


def with_group(programs: list[AnyProgram], variant: Variant) -> list[AnyProgram]:
    """The programs, changed to join the variant's control group if it has one."""
    if not variant.slice:
        return programs
    from measure import remedy

    return remedy.inside(programs, variant)


def workload(
    options: Options,
    run_dir: Path,
    events: Events,
    stack: Stack,
    environment: WorkloadEnvironment,
    recorded_disks: dict[str, str],
) -> tuple[str, str]:
    chosen = registry.find(options.workload)
    environment.figures.unlink(missing_ok=True)
    killed_before = machine_facts.counter("oom_kill")
    if options.atomic_order:
        events.write("meta", atomic=echo_check.checked(options.atomic_order, options.atomic_rate))
    without = read_memory()
    typed_at = with_group(key_programs.typed_at(options, environment), options.variants[0])
    observers = Observers(options, run_dir, events, recorded_disks, typed_at)

    def when_locked() -> None:
        events.write("meta", observing=cost(without, read_memory()))
        observers.prepare()  # only now: their programs are no part of that cost

    def begin(problems: list[str]) -> float:
        # Every run begins with the same page cache: without what the preparation left in it.
        clean_page_cache()
        t0 = time.monotonic() + AHEAD_S
        observers.begin(t0, problems)
        return t0

    interrupted = live_lock = ""
    programs = [*companions.programs(options, SCRATCH), *chosen.programs(options, environment)]
    try:
        recorder = RecorderProcess(
            observers.program,
            run_dir,
            with_group(programs, options.variants[0]),
            until=chosen.finite(options),
            timeout_s=options.timeout,
            when_locked=when_locked,
            when_ready=begin,
            beacon=observers.beacon,
        )
        try:
            live_lock = observers.live_lock(recorder)
            recorded = recorder.stop() if live_lock else recorder.wait()
        except Interrupted as error:
            interrupted = str(error)
            recorded = recorder.stop()
        except BaseException:
            recorder.stop()
            raise
    finally:
        observed = observers.end()
    for facts in (recorded, *observed):
        if facts is not None:
            observer = facts.pop("observer")
            events.write("observer", **observer, **facts)
    if used := swap_facts.zram_use(stack):
        events.write("meta", swap=used)
    _write_figures(environment.figures, events)
    if interrupted:
        return ABORTED, f"interrupted by {interrupted}"
    if live_lock:
        return HUNG, live_lock
    if recorded is None:
        return ABORTED, "the recorder died"
    return outcome.judged(options, chosen, recorded, killed_before)


def _write_figures(path: Path, events: Events) -> None:
    """Write the figures that the workload measured itself, if it got that far."""
    with contextlib.suppress(FileNotFoundError, ValueError):
        events.write("meta", figures=json.loads(path.read_text()))
        path.unlink()


def main() -> int:
    """run_test.sh --bare: measure as the command line says."""
    return run(registry.resolved(parse_measured(sys.argv[1:], registry.with_gitks())))


if __name__ == "__main__":
    sys.exit(run_command("run_test.sh", main))
