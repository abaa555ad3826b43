# SPDX-License-Identifier: GPL-2.0-or-later
"""A run on this machine: starts the measuring process, shows it, and undoes all changes."""

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

from contract import checkout
from contract.options import Options
from contract.run_files import ABORTED, CONSOLE_LOG, EVENTS, UNFINISHED
from contract.run_record import close, read_events, reported_status, write_meta
from errors import UserError
from measure import knobs
from run.campaign import Campaign
from run.live import View
from run.measure_command import measure_argv
from run.preparation import music_source
from run.screen import Screen
from setup import history, observers
from setup.crypt_lvm import activation, ownership, swaps
from setup.devices import check
from setup.devices.device import Device, opened, sys_folder
from vm import progress, room
from workloads import memcg
from workloads.registry import find, progress_streams, stream_names

# From SIGTERM to SIGKILL: a swapoff may take swaps.PATIENCE_S, and must not be cut short.
GRACE_S = swaps.PATIENCE_S + 120.0


class Arming(Protocol):
    """Remembers Ctrl-C (run.jobs.stop_signals.Stopped)."""

    def __call__(self) -> bool: ...

    def armed(self) -> contextlib.AbstractContextManager[Any]: ...


def command(options: Options, run_dir: Path, repo: Path | None, source: str) -> list[str]:
    """The argv of the measuring process, which does the same as in a guest."""
    argv = ["setpriv", "--pdeathsig", "TERM", sys.executable, "-m", "measure.one_run"]
    argv += ["--device", str(options.device)]
    return argv + measure_argv(
        options, options.variants[0], repo=repo or "", music=source, run_dir=run_dir
    )


def run(options: Options, stopped: Arming, argv: list[str]) -> tuple[Path, str, str]:
    """Measure on options.device; returns the run's folder, state and why.

    Once that folder exists, status.json reports any exception, and the device is cleared.
    """
    assert options.device is not None
    if os.geteuid() != 0:
        raise UserError("--device needs root", hint="run it with sudo")
    check.refuse_other_name(options.device, options.destroy_data)
    with opened(options.device) as pinned:
        return _run(options, pinned, stopped, argv)


def _run(
    options: Options, pinned: Device, stopped: Arming, argv: list[str]
) -> tuple[Path, str, str]:
    """Measure on the device that options.device names now, even if the name changes later."""
    device = pinned.path
    destroy_data = options.destroy_data and device
    chosen = find(options.workload)
    observers.program()  # touch nothing if the observers cannot be built
    # Programs of a live run are left alone. A dead run's programs would keep its file system busy,
    # and its mapping would have the device refused as in use forever.
    ownership.refuse_others(device)
    chosen.undo()
    memcg.undo()  # a remedy's group
    ownership.clear_dead(device)
    activation.check_mount()
    check.check_device(device, destroy_data=destroy_data)
    repo = None
    if options.gitks:
        repo = history.use(Path(options.repo)) if options.repo else history.build(options.commits)
    source = music_source(options)
    commits = 0 if repo is None else chosen.reads(options)
    label = options.variants[0].name(os.uname().release, ())
    campaign = Campaign(options, argv)
    campaign.enter([(replace(options.variants[0], label=label), None)])
    room.check_space(campaign.path.resolve(), room.RESULT_BYTES, "a result", "--out DIR")
    run_dir, order = campaign.begin(*campaign.left()[0])
    run_dir = run_dir.resolve()
    facts = {
        "suite": checkout.commit(),
        "label": label,
        "variant": label,
        "order": order,
        "append": "",
        "accelerator": "none",
        "disk": _disk_facts(pinned),
        "parameters": options.parameters,
    }
    screen = Screen()
    view = View(
        label,
        screen,
        run_dir,
        stream_names(options),
        commits,
        options.passes,
        limit_s=options.timeout,
    )
    with stopped.armed():
        try:
            write_meta(run_dir, facts)
            with room.reserved(run_dir), screen, view:
                inner = replace(options, device=device, destroy_data=destroy_data)
                status = _measure(command(inner, run_dir, repo, source), run_dir, view, stopped)
            state, why = _verdict(run_dir, status)
            if state == UNFINISHED:
                streams = progress_streams(options)
                state, why = progress.at_limit(run_dir, streams, options.hang_after, why)
                if state == UNFINISHED and (words := view.so_far()):
                    why += f": {words}"
            close(run_dir, facts, state, why)
        except BaseException as error:
            why = str(error) if isinstance(error, UserError) else f"{type(error).__name__}: {error}"
            # If the status cannot be written either, report the first error.
            with contextlib.suppress(OSError):
                close(run_dir, facts, ABORTED, why)
            raise
        finally:
            # The measuring process has ended. Undo what it did not undo.
            try:
                for event in read_events(run_dir / EVENTS):
                    knobs.put_back(event.get("knobs", ()))
                chosen.undo()
                memcg.undo()
            finally:
                ownership.clear_dead(device)
    return run_dir, state, why


def _measure(argv: list[str], run_dir: Path, view: View, stopped: Callable[[], bool]) -> int:
    """Run the measuring process; returns its exit status. It has ended in any case."""
    with open(run_dir / CONSOLE_LOG, "wb") as console:
        process = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=console,
            stderr=console,
            cwd=checkout.ROOT,
            start_new_session=True,
        )
    try:
        _follow(process, view.tick, stopped)
    except BaseException:
        process.terminate()
        try:
            process.wait(GRACE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        raise
    return process.returncode


def _follow(
    process: "subprocess.Popen[bytes]", tick: Callable[[], None], stopped: Callable[[], bool]
) -> None:
    asked: float | None = None
    while process.poll() is None:
        tick()
        if stopped() and asked is None:
            asked = time.monotonic()
            process.terminate()
        if asked is not None and time.monotonic() - asked > GRACE_S:
            process.kill()
        time.sleep(0.25)
    tick()


def _verdict(run_dir: Path, status: int) -> tuple[str, str]:
    """(state, why): the status that the measuring process reported, else its last output line."""
    reported = reported_status(read_events(run_dir / EVENTS))
    if reported is not None:
        return reported
    lines = (run_dir / CONSOLE_LOG).read_text(errors="replace").strip().splitlines()
    last = f": {lines[-1]}" if lines else ""
    return ABORTED, f"the measuring process ended with status {status}{last}"


def _disk_facts(device: Device) -> dict[str, Any]:
    facts = {"size_bytes": device.size, "cache": "the machine's own", "model": "file"}
    if device.is_block:
        folder = sys_folder(device.number)
        models = (folder / "device/model", folder.parent / "device/model")
        there = (path.read_text().strip() for path in models if path.exists())
        facts["model"] = next(there, "unknown")
    return facts
