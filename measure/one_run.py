# SPDX-License-Identifier: GPL-2.0-or-later
"""One run on the machine that this runs on: builds the stack, records the workload, undoes all.

In a guest and on a real machine alike; standard library only. The observers are processes of their
own (monitors.launch); this one only waits while they work, and may be swapped out like any other.
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

from contract import run_files
from contract.command_line import parse_measured
from contract.options import Options
from contract.run_files import ABORTED, COMPLETED, EVENTS, HUNG, OOM, UNFINISHED
from contract.run_record import Events
from contract.variant import Variant
from errors import Exit, UserError, run_command
from measure import delay_accounting, echo_check, key_programs, knobs, machine_facts, swap_facts
from measure.observers import Observers
from measure.observing_cost import clean_page_cache, cost, read_memory
from monitors.launch import RecorderProcess
from monitors.streams import AnyProgram
from setup.crypt_lvm import activation, mapper, ownership, stack_build
from setup.crypt_lvm.stack import Stack
from setup.devices.check import check_device
from setup.observers import program
from workloads import beside, registry
from workloads.workload import Ground, Workload

SCRATCH = activation.MOUNT
# Between the first observer being told when the workload begins, and its begin: for the telling
# the runner itself may have to be swapped in (6.17: 0.8 s).
AHEAD_S = 2.0
FIGURES = mapper.RUN / "figures.json"  # in memory, like all that stands there


class Interrupted(Exception):
    """A signal asked the run to end."""


class Stop:
    """Turns the first SIGINT, SIGTERM or SIGHUP into an Interrupted; ignores those that follow.

    No longer once `late` is set: then the wish is only remembered.
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
    """How the run ended, written as the `status` event: what is said first stays."""

    def __init__(self, events: Events) -> None:
        self._events = events
        self.state = ""

    def say(self, state: str, why: str) -> None:
        """Write it, unless there is one."""
        if not self.state:
            self.state = state
            self._events.write("status", state=state, why=why)


def run(options: Options) -> int:
    """Measure; the exit status of run_test.sh --bare. The status event says how it ended."""
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
    chosen.check_commands()
    more = more_disks(chosen)
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
        events.write("meta", **stack_facts(stack, options))
        events.write("phase", name="fill")
        ground = Ground(SCRATCH, watched(stack)["disk"], FIGURES, tuple(more.values()))
        with (
            chosen.prepared(options, ground),
            delay_accounting.switched_on(events),
            knobs.applied(options.variants[0].knobs, watched(stack)) as applied,
            told_remedy(options.variants[0], events),
        ):
            (SCRATCH / beside.MUSIC).mkdir()
            events.write("meta", knobs=applied)
            events.write("phase", name="workload")
            state, why = workload(options, run_dir, events, stack, ground, watched(stack) | more)
            # The run has ended: from here on a signal changes neither that nor the undoing.
            stop.late = True
            verdict.say(state, why)
        events.write("phase", name="teardown")


@contextlib.contextmanager
def told_remedy(variant: Variant, events: Events) -> Iterator[None]:
    """What the variant's remedy adds to the run, and what of it meta.json says."""
    if not variant.remedy:
        yield
        return
    from measure import remedy  # a run without any has no memory for it

    with remedy.around(variant) as facts:
        events.write("meta", remedy=facts)  # also of a run that does not live to its end
        yield
    events.write("meta", remedy=facts)


def in_its_group(programs: list[AnyProgram], variant: Variant) -> list[AnyProgram]:
    """The programs, in the variant's control group if it has one."""
    if not variant.slice:
        return programs
    from measure import remedy

    return remedy.inside(programs)


def workload(
    options: Options,
    run_dir: Path,
    events: Events,
    stack: Stack,
    ground: Ground,
    disks: dict[str, str],
) -> tuple[str, str]:
    chosen = registry.find(options.workload)
    ground.figures.unlink(missing_ok=True)
    killed_before = machine_facts.counter("oom_kill")
    if options.atomic_order:
        events.write("meta", atomic=echo_check.checked(options.atomic_order, options.atomic_rate))
    without = read_memory()
    typed_at = in_its_group(key_programs.here(), options.variants[0])
    observers = Observers(options, run_dir, events, disks, typed_at)

    def tell_cost() -> None:
        events.write("meta", observing=cost(without, read_memory()))
        observers.prepare()

    def begin(problems: list[str]) -> float:
        # Every run begins with the same page cache: nothing of what was done to prepare it.
        clean_page_cache()
        t0 = time.monotonic() + AHEAD_S
        observers.begin(t0, problems)
        return t0

    interrupted = live_lock = ""
    programs = [*beside.programs(options, SCRATCH), *chosen.programs(options, ground)]
    try:
        recorder = RecorderProcess(
            observers.program,
            run_dir,
            in_its_group(programs, options.variants[0]),
            until=chosen.finite(options),
            timeout_s=options.timeout,
            when_locked=tell_cost,
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
    if used := swap_facts.used(stack):
        events.write("meta", swap=used)
    _tell_figures(ground.figures, events)
    if interrupted:
        return ABORTED, f"interrupted by {interrupted}"
    if live_lock:
        return HUNG, live_lock
    if recorded is None:
        return ABORTED, "the recorder died"
    return judged(options, chosen, recorded, killed_before)


def _tell_figures(path: Path, events: Events) -> None:
    """What the workload measured by itself, if it got so far."""
    with contextlib.suppress(FileNotFoundError, ValueError):
        events.write("meta", figures=json.loads(path.read_text()))
        path.unlink()


def judged(
    options: Options, chosen: Workload, recorded: dict[str, Any], killed_before: int | None
) -> tuple[str, str]:
    killed = machine_facts.counter("oom_kill")
    kills = 0 if killed is None or killed_before is None else killed - killed_before
    if recorded["outcome"] == "deadline":
        # Whether they went on, the lines tell, and these have left the machine (vm/progress.py).
        late = f"{chosen.late} were not done within {options.timeout} s"
        if kills > 0:
            return OOM, f"the kernel killed {kills} for lack of memory; {late}"
        return UNFINISHED, late
    ends: dict[str, int | None] = recorded["ends"]
    finite = chosen.finite(options)
    early: dict[str, str] = recorded["early"]
    by_daemon = killed_by_daemon(options, recorded, finite)
    ended_badly = {
        name: status
        for name, status in ends.items()
        # The others were ended when these were done.
        if status and (name in finite or name in early)
    }
    failed = {name: status for name, status in ended_badly.items() if name in finite}
    if by_daemon and not kills:
        return OOM, f"the daemon killed {', '.join(by_daemon)}"
    if chosen.kills and not (failed or early):
        return COMPLETED, chosen.done
    if kills > 0:
        return OOM, f"the kernel killed {kills} for lack of memory" + (
            f", among them {', '.join(sorted(ended_badly))}" if ended_badly else ""
        )
    if failed:
        name, status = sorted(failed.items())[0]
        return ABORTED, f"{name} ended with status {status}"
    if early:
        name, last = next(iter(early.items()))
        said = f": {last}" if last else ""
        return ABORTED, f"{name} ended early with status {ends[name]}{said}"
    return COMPLETED, chosen.done


def killed_by_daemon(options: Options, recorded: dict[str, Any], finite: set[str]) -> list[str]:
    """The streams that a signal ended before the run's end, if there is a daemon that sends any.

    Those that never end by themselves may have taken a SIGTERM well: their status is 0.
    """
    ends: dict[str, int | None] = recorded["ends"]
    signals = (-signal.SIGTERM, -signal.SIGKILL)
    early = {name for name in recorded["early"] if ends.get(name) in (0, *signals)}
    killed = {name for name in finite if ends.get(name) in signals}
    return sorted(early | killed) if options.variants[0].daemon else []


def stack_facts(stack: Stack, options: Options) -> dict[str, Any]:
    return {
        "swap": swap_facts.found(stack, options.variants[0].swap),
        "crypt": "aes-xts-plain64, 512-bit key" if options.crypt else "none",
        "fs": stack.fs,
    }


def watched(stack: Stack) -> dict[str, str]:
    """Column prefix of diskstats.tsv -> the kernel's name of the block device."""
    parts = {"disk": stack.disk, "fs": stack.fs_device}
    if stack.swapped_to:
        parts["swap"] = stack.swapped_to
    if stack.crypt is not None:
        parts["crypt"] = stack.crypt
    return {prefix: machine_facts.block_name(path) for prefix, path in parts.items()}


def more_disks(chosen: Workload) -> dict[str, str]:
    """The kernel's names of the disks that it has beside the one under test, by their serials."""
    found = {}
    for serial in run_files.more_disks(chosen.more_disks):
        name = machine_facts.disk_of_serial(serial)
        if name is None:
            raise UserError(f"--workload {chosen.name} needs a disk with the serial {serial}")
        # Its serial may be that of a disk of the user's.
        check_device(f"/dev/{name}", destroy_data=None)
        found[serial] = name
    return found


def main() -> int:
    """run_test.sh --bare: measure as the command line says."""
    return run(registry.resolved(parse_measured(sys.argv[1:], registry.with_gitks())))


if __name__ == "__main__":
    sys.exit(run_command("run_test.sh", main))
