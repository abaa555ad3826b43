# SPDX-License-Identifier: GPL-2.0-or-later
"""One run in a VM: boots the guest, follows what it sends, ends it, and reports how it ended."""

import contextlib
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

from contract.run_files import (
    ABORTED,
    CONSOLE_LOG,
    EVENTS,
    HUNG,
    LOST,
    PANICKED,
    UNFINISHED,
    WORK,
    more_disks,
)
from contract.run_record import close, read_events, write_meta, write_status
from errors import UserError
from setup import cache, disk, rsync_daemon
from vm import progress, relay
from vm.classify import classify
from vm.disk_spec import Served, served
from vm.guest import Guest, GuestJob, append
from vm.guest_facts import outside_facts
from vm.host import Others
from vm.machine import Machine, running
from vm.qemu import GUEST, HOST, Disk, Spec
from vm.results_memory import appending
from vm.room import copied_disk, reserved, work_disk
from vm.watch import Watch

SCRATCH = "vm"  # the kind of a run's scratch folder in the cache
KERNELS_FAULT = (HUNG, PANICKED, LOST)
# The most seconds of a busy host that a second of a guest's own clock may take.
MAX_SLOWDOWN = 10


def run(
    guest: Guest,
    guest_job: GuestJob,
    run_dir: Path,
    *,
    tick: Callable[[], None],
    stopped: Callable[[], bool],
    facts: dict[str, Any],
    booted: Callable[[Machine], None] = lambda machine: None,
    so_far: Callable[[], str] = lambda: "",
) -> tuple[str, str]:
    """Do one run in run_dir; returns its (state, why), which status.json then has, too.

    tick is called a few times a second; booted is called once, with the running machine. facts:
    further facts for meta.json. so_far: describes how far a run got that reached its limit.
    """
    facts = {**outside_facts(guest, guest_job), **facts}
    write_meta(run_dir, facts)
    others = Others()
    try:
        reason, died_of, disks = _supervise(guest, guest_job, run_dir, tick, stopped, booted)
        tick()
    except BaseException as error:
        why = str(error) if isinstance(error, UserError) else f"{type(error).__name__}: {error}"
        write_status(run_dir, ABORTED, why, elapsed_s=None)
        raise
    events = read_events(run_dir / EVENTS)
    state, why = classify(events, run_dir / CONSOLE_LOG, reason, died_of)
    if state == UNFINISHED:
        if reason is None:  # the guest said so, but it does not judge its own progress
            state, why = progress.at_limit(run_dir, guest_job.progress, guest_job.hang_after_s, why)
        if state == UNFINISHED and (words := so_far()):
            why += f": {words}"
    # A guest from a damaged image may end in the same way.
    if state in KERNELS_FAULT and (spoilt := cache.spoilt()):
        what = ", ".join(map(str, spoilt))
        why = f"damaged while it was used: {what} (the run: {state}: {why})"
        state = ABORTED
    if disks is not None:
        facts["disk"] = {**facts["disk"], "requests": disks.requests, "aged": disks.aged}
    if guest.timing.clock == HOST:
        facts["host"] = {**facts["host"], "busy_by_others": others.share()}
    close(run_dir, facts, state, why)
    return state, why


def _supervise(
    guest: Guest,
    guest_job: GuestJob,
    run_dir: Path,
    tick: Callable[[], None],
    stopped: Callable[[], bool],
    booted: Callable[[Machine], None],
) -> tuple[tuple[str, str] | None, str | None, Served | None]:
    """Run QEMU; returns why we ended it (or None), what killed it, and its disks' counts."""
    with (
        appending(run_dir, guest_job.files) as memory,
        reserved(run_dir),  # released before the memory is emptied: room for it on a full disk
        cache.scratch(SCRATCH) as scratch,
        copied_disk(scratch, guest.files.root_image) as root,
        contextlib.ExitStack() as opened,
    ):
        tested = {
            serial: opened.enter_context(work_disk(scratch))
            for serial in (WORK, *more_disks(guest.hardware.more_disks))
        }
        job = scratch / "job.img"
        command = scratch / "run" / "command"
        command.parent.mkdir()
        command.write_text(guest_job.command)
        disk.job_disk(job, guest.files.suite, {"run": command.parent})
        own = guest.timing.clock == GUEST
        disks = [
            Disk("root", "/dev/fdset/1"),
            Disk("job", str(job), read_only=True),
        ]
        if guest.files.history_image is not None:
            disks.append(Disk("history", str(guest.files.history_image), read_only=True))
        if own:
            disks.append(Disk("music", str(guest.files.music_image), read_only=True))
        fdsets = {1: root}
        modelled = guest.timing.disk is not None
        for number, (serial, fds) in enumerate(tested.items(), start=2):
            fdsets[number] = fds
            disks.append(
                Disk(
                    serial,
                    f"/dev/fdset/{number}",
                    iops=None if modelled else guest.hardware.disk_iops,
                    bps=None if modelled else guest.hardware.disk_bps,
                    model=guest.timing.disk,
                    descriptor=fds[0],
                )
            )
        spec = Spec(
            emulator=guest.emulator,
            accel=guest.accel,
            kernel=guest.kernel.image,
            initrd=guest.files.initrd,
            append=append(guest.accel, guest.append),
            memory=guest.hardware.memory,
            cpus=guest.hardware.cpus,
            console_log=run_dir / CONSOLE_LOG,
            disks=disks,
            results=memory.path,
            music_command=None if own else music_command(guest.music, scratch),
            fdsets=fdsets,
            mips=guest.hardware.mips if own else None,
            seed=guest_job.seed,
            library=guest.timing.library,
        )
        with running(spec, scratch) as machine:
            booted(machine)
            slow = MAX_SLOWDOWN if own else 1
            reason = Watch(guest_job, run_dir, scratch, tick, slow).follow(machine, stopped)
            died_of = machine.died_of if reason is None else None
        disks_served = served(machine.last_words)
    return reason, died_of, disks_served


def music_command(music: str, scratch: Path) -> str:
    """The command that stands for the other machine: an rsync daemon on its standard input.

    A remote rsync:// is relayed, so that the guest cannot reach anything else.
    """
    if music.startswith("rsync://"):
        host = music.removeprefix("rsync://").partition("/")[0]
        return relay.command(host)
    config = scratch / "rsyncd.conf"
    config.write_text(rsync_daemon.config(music, str(scratch / "rsyncd.log")))
    return shlex.join(["rsync", "--daemon", f"--config={config}"])
