# SPDX-License-Identifier: GPL-2.0-or-later
"""One run in a VM: boots the guest, follows what it sends, ends it, and says how it ended."""

import contextlib
import shlex
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from contract.run_files import ABORTED, CONSOLE_LOG, EVENTS, HANG, HUNG, WORK, more_disks
from contract.run_record import close, read_events, write_meta, write_status
from errors import UserError
from setup import cache, disk, kconfig, rsync_daemon
from setup.kernels import Kernel
from vm import hang_dump, relay
from vm.classify import classify
from vm.disk_model import DiskModel
from vm.host import Others, cpu_model
from vm.machine import Machine, running
from vm.qemu import CACHE, CPU, GUEST, HOST, MACHINE, Disk, Ports, Spec
from vm.room import WORK_DISK_BYTES, copied_disk, reserved, work_disk

SCRATCH = "vm"  # the kind of folder in the cache that a run has
HOST_RESERVE_BYTES = 16 << 20
BOOT_DEADLINE_S = 90.0
# Building the stack and cloning say nothing, and a slow disk or a large history take long.
PREPARE_DEADLINE_S = 900.0
POWER_OFF_S = 120.0
POLL_S = 0.25
# On a busy host a second of a guest's own clock may take so many of the host's.
SLOWEST = 10
# A kernel that hangs shall still say where: sysrq over the serial line, an NMI that panics, and a
# panic that prints all CPUs' stacks (panic_print bit 6, kernel commit 60c958d8df9c, 5.18). The
# delays of tasks are counted in all runs, whether they are read or not: one kernel configuration.
APPEND = (
    "console=ttyS0 panic=-1 sysrq_always_enabled unknown_nmi_panic panic_print=0x40 "
    "net.ifnames=0 delayacct"
)


# QEMU's emulated CPUs share one time stamp counter, which Linux does not know: it would fall back
# to the HPET, and each look at the clock would be a trapped access to an emulated device.
APPEND_TCG = " tsc=reliable"


def append(accel: str, more: str = "") -> str:
    """The guest kernel's command line; more: the variant's own words."""
    return APPEND + (APPEND_TCG if accel == "tcg" else "") + (f" {more}" if more else "")


@dataclass(frozen=True)
class Guest:
    """A virtual machine with all that it needs, ready on the host; memory in bytes.

    append: more of its kernel's command line; music: a folder, or rsync://HOST/module of another
    machine. machine: the name of the machine that it is, and in changed the options that made it
    another. clock: GUEST or HOST, and why. disk: its model, if it has one; else disk_iops and
    disk_bps limit it on the host's clock. library: of the model, whose way with requests a guest's
    clock needs even for a disk without one. music_image: a disk with the folder `music`: on its own
    clock the guest cannot wait for another machine. more_disks: of the same kind as the disk under
    test, beside it.
    """

    kernel: Kernel
    initrd: Path
    root_image: Path
    history_image: Path | None  # None: of a workload that reads none
    music: str
    accel: str
    accel_reason: str
    qemu_version: str
    memory: int
    cpus: int
    disk_iops: int | None = None
    disk_bps: int | None = None
    append: str = ""
    machine: str = HOST
    changed: tuple[str, ...] = ()
    clock: str = HOST
    clock_reason: str = ""
    mips: int | None = None
    disk: DiskModel | None = None
    library: Path | None = None
    music_image: Path | None = None
    more_disks: int = 0


@dataclass(frozen=True)
class Errand:
    """What a guest is to do: a shell script, the files that it sends meanwhile, and its limits."""

    command: str
    files: list[str]
    timeout_s: int  # of the workload
    hang_after_s: int  # without a word from it
    seed: int = 1  # of the randomness of a guest with a clock of its own


def music_command(music: str, scratch: Path) -> str:
    """The command that plays the other machine's part: an rsync daemon on its standard input.

    A remote rsync:// is relayed, so that the guest itself still reaches nothing else.
    """
    if music.startswith("rsync://"):
        host = music.removeprefix("rsync://").partition("/")[0]
        return relay.command(host)
    config = scratch / "rsyncd.conf"
    config.write_text(rsync_daemon.config(music, str(scratch / "rsyncd.log")))
    return shlex.join(["rsync", "--daemon", f"--config={config}"])


def host_facts(guest: Guest) -> dict[str, Any]:
    """What of meta.json the host, its QEMU and what is missing there decide."""
    return {
        "accelerator": guest.accel,
        "accelerator_reason": guest.accel_reason,
        "clock": {"kind": guest.clock, "why": guest.clock_reason},
        "machine": {
            "name": guest.machine,
            "changed": list(guest.changed),
            "qemu": guest.qemu_version,
            "type": MACHINE,
            "cpu": CPU[guest.accel],
            **({"mips": guest.mips} if guest.clock == GUEST else {}),
        },
        "disk": _disk_facts(guest),
        "host": {"cpu_model": cpu_model()},
    }


def _disk_facts(guest: Guest) -> dict[str, Any]:
    of_disk: dict[str, Any] = {"model": "virtio-blk, sparse file"}
    if guest.disk is not None:
        of_disk = {
            "model": "virtio-blk, a model of a disk (docs/MACHINES.md)",
            "kind": "rotating" if guest.disk.rotates else "flash",
            "parallel": guest.disk.parallel,
            "depth": guest.disk.depth,
            "queues": guest.disk.queues,
        }
    return {
        "size_bytes": WORK_DISK_BYTES,
        "cache": CACHE,
        "iops": guest.disk_iops,
        "bps": guest.disk_bps,
        **of_disk,
        **({"more": guest.more_disks} if guest.more_disks else {}),
    }


def outside_facts(guest: Guest, errand: Errand) -> dict[str, Any]:
    """What meta.json says of the machine that only the host knows."""
    kernel = guest.kernel
    return {
        **host_facts(guest),
        "kernel": {
            "spec": kernel.spec,
            "image_digest": kernel.image_digest,
            "config_digest": kernel.config_digest,
            **({"unwinder": "guess"} if _guesses_stacks(kernel) else {}),
        },
        "append": guest.append,
        **({"seed": errand.seed} if guest.clock == GUEST else {}),
    }


def _guesses_stacks(kernel: Kernel) -> bool:
    return kernel.config is not None and kconfig.guesses_stacks(kernel.config)


class Session:
    """Follows one guest to its end; each reason to end it early is a method."""

    def __init__(
        self, errand: Errand, run_dir: Path, scratch: Path, tick: Callable[[], None], slow: int = 1
    ) -> None:
        self._errand = errand
        self._slow = slow  # seconds of ours that one of the guest's may take
        self._run = run_dir
        self._scratch = scratch
        self._tick = tick
        self._files = [run_dir / name for name in errand.files]
        self._size = -1
        self._console_size = -1
        self._heard = time.monotonic()
        self._console_heard = self._heard
        self._began = self._heard
        self._status_at: float | None = None
        self._started = False
        self._events_size = -1

    @property
    def console_log(self) -> Path:
        """The serial console's log."""
        return self._run / CONSOLE_LOG

    def follow(self, machine: Machine, stopped: Callable[[], bool]) -> tuple[str, str] | None:
        """Return when QEMU has ended (None) or has to be ended: then (state, why)."""
        while machine.alive:
            self._tick()
            reason = self._reason_to_end(stopped)
            if reason is not None and reason[0] == HUNG:
                if machine.paused():
                    return ABORTED, "QEMU stopped the guest: the host's disk is full"
                hang_dump.collect(machine, self.console_log, self._run / HANG)
            if reason is not None:
                return reason
            time.sleep(POLL_S)
        return None

    def _reason_to_end(self, stopped: Callable[[], bool]) -> tuple[str, str] | None:
        now = time.monotonic()
        if stopped():
            return ABORTED, "interrupted by the user"
        for place in (self._run, self._scratch):
            free = shutil.disk_usage(place).free
            if free < HOST_RESERVE_BYTES:
                return ABORTED, f"the host's disk is full: {free >> 20} MiB free at {place}"
        self._look(now)
        slow = self._slow
        if self._status_at is not None:
            if now - self._status_at > POWER_OFF_S * slow:
                return HUNG, f"no power-off within {POWER_OFF_S * slow:.0f} s of the guest's end"
            return None
        silent = now - self._heard
        if self._size == 0:
            # No result yet: the boot. The console counts as a sign of life there.
            if now - max(self._heard, self._console_heard) > BOOT_DEADLINE_S * slow:
                return HUNG, f"the guest did not boot: silent for {BOOT_DEADLINE_S * slow:.0f} s"
        elif silent > (self._errand.hang_after_s if self._started else PREPARE_DEADLINE_S) * slow:
            return HUNG, f"the guest sent nothing for {silent:.0f} s"
        limit = (self._errand.timeout_s + BOOT_DEADLINE_S + PREPARE_DEADLINE_S) * slow
        if now - self._began > limit:
            return HUNG, f"the guest did not end within {limit:.0f} s"
        return None

    def _look(self, now: float) -> None:
        size = sum(file.stat().st_size for file in self._files if file.exists())
        if size != self._size:
            self._size, self._heard = size, now
        console = self.console_log.stat().st_size if self.console_log.exists() else 0
        if console != self._console_size:
            self._console_size, self._console_heard = console, now
        events = self._run / EVENTS
        events_size = events.stat().st_size if events.exists() else 0
        if events_size != self._events_size:
            self._events_size = events_size
            said = {event["event"] for event in read_events(events)}
            self._started = "start" in said
            if self._status_at is None and "status" in said:
                self._status_at = now


def run(
    guest: Guest,
    errand: Errand,
    run_dir: Path,
    *,
    tick: Callable[[], None],
    stopped: Callable[[], bool],
    facts: dict[str, Any],
    booted: Callable[[Machine], None] = lambda machine: None,
) -> tuple[str, str]:
    """Do one run in run_dir; its (state, why), which status.json then says too.

    tick is called a few times a second; booted once, with the running machine. facts: what else
    meta.json is to say.
    """
    facts = {**outside_facts(guest, errand), **facts}
    write_meta(run_dir, facts)
    others = Others()
    try:
        reason, died_of = _supervise(guest, errand, run_dir, tick, stopped, booted)
    except BaseException as error:
        why = str(error) if isinstance(error, UserError) else f"{type(error).__name__}: {error}"
        write_status(run_dir, ABORTED, why, elapsed_s=None)
        raise
    said = read_events(run_dir / EVENTS)
    state, why = classify(said, run_dir / CONSOLE_LOG, reason, died_of)
    if guest.clock == HOST:
        facts["host"] = {**facts["host"], "busy_by_others": others.share()}
    close(run_dir, facts, state, why)
    return state, why


def _supervise(
    guest: Guest,
    errand: Errand,
    run_dir: Path,
    tick: Callable[[], None],
    stopped: Callable[[], bool],
    booted: Callable[[Machine], None],
) -> tuple[tuple[str, str] | None, str | None]:
    """Why it was ended, if it was, and what QEMU died of by itself."""
    with (
        reserved(run_dir),
        cache.scratch(SCRATCH) as scratch,
        copied_disk(scratch, guest.root_image) as root,
        contextlib.ExitStack() as opened,
    ):
        tested = {
            serial: opened.enter_context(work_disk(scratch))
            for serial in (WORK, *more_disks(guest.more_disks))
        }
        job = scratch / "job.img"
        command = scratch / "run" / "command"
        command.parent.mkdir()
        command.write_text(errand.command)
        disk.job_disk(job, {"run": command.parent})
        own = guest.clock == GUEST
        disks = [
            Disk("root", "/dev/fdset/1"),
            Disk("job", str(job), read_only=True),
        ]
        if guest.history_image is not None:
            disks.append(Disk("history", str(guest.history_image), read_only=True))
        if own:
            disks.append(Disk("music", str(guest.music_image), read_only=True))
        fdsets = {1: root}
        modelled = guest.disk is not None
        for number, (serial, fds) in enumerate(tested.items(), start=2):
            fdsets[number] = fds
            disks.append(
                Disk(
                    serial,
                    f"/dev/fdset/{number}",
                    iops=None if modelled else guest.disk_iops,
                    bps=None if modelled else guest.disk_bps,
                    model=guest.disk,
                    descriptor=fds[0],
                )
            )
        spec = Spec(
            accel=guest.accel,
            kernel=guest.kernel.image,
            initrd=guest.initrd,
            append=append(guest.accel, guest.append),
            memory=guest.memory,
            cpus=guest.cpus,
            console_log=run_dir / CONSOLE_LOG,
            disks=disks,
            ports=Ports(run_dir, errand.files),
            music_command=None if own else music_command(guest.music, scratch),
            fdsets=fdsets,
            mips=guest.mips if own else None,
            seed=errand.seed,
            library=guest.library,
        )
        with running(spec, scratch) as machine:
            booted(machine)
            slow = SLOWEST if own else 1
            reason = Session(errand, run_dir, scratch, tick, slow).follow(machine, stopped)
            died_of = machine.died_of if reason is None else None
        tick()
    return reason, died_of
