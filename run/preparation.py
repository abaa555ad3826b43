# SPDX-License-Identifier: GPL-2.0-or-later
"""What runs in VMs need, made ready on the host before the first of them begins."""

import concurrent.futures
import contextlib
import functools
import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from contract import machine_model
from contract.options import Options
from contract.swap import Swap
from contract.variant import Variant
from errors import UserError
from run.clock import accelerator, timing
from setup import disk, history, image, initramfs, kconfig, kernels, music, observers
from vm import probe
from vm.guest import Guest
from vm.qemu import GUEST
from workloads import registry

T = TypeVar("T")
Boot = tuple[str, Swap, tuple[str, ...]]  # kernel, swap and modules: what an initramfs is made of


class Ready(NamedTuple):
    """A variant, and the guest that its runs are done in."""

    variant: Variant
    guest: Guest


def say(text: str) -> None:
    """Print a line; a reader that went away is no reason to end a measurement."""
    with contextlib.suppress(OSError):
        print(text, flush=True)


def music_folder(options: Options) -> Path:
    """The folder with the music: the user's, or a made one."""
    if options.music is None:
        return music.build()
    folder = Path(options.music)
    if not folder.is_dir():
        raise UserError(f"--music {options.music}: no such folder")
    return folder.resolve()


def timed(what: str, work: Callable[[], T]) -> T:
    """Run work, saying on one line when it is done and how long it took, if that was long."""
    began = time.monotonic()
    result = work()
    took = time.monotonic() - began
    if took >= 0.5:
        say(f"  {what}: ready after {took:.1f} s")
    return result


@contextlib.contextmanager
def ending_children() -> Iterator[None]:
    """Within: Ctrl-C or SIGTERM ends our child processes too; the threads wait for theirs."""
    before = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)

    def end(number: int, frame: Any) -> None:
        for children in Path("/proc/self/task").glob("*/children"):
            for pid in children.read_text().split():
                with contextlib.suppress(OSError):
                    os.kill(int(pid), signal.SIGTERM)
        raise KeyboardInterrupt

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, end)
    try:
        yield
    finally:
        for number, handler in zip((signal.SIGTERM, signal.SIGINT), before, strict=True):
            signal.signal(number, handler)


def make_ready(
    options: Options, pinned: Callable[[Variant], str] = lambda variant: variant.kernel
) -> list[Ready]:
    """For each variant a guest: kernel, initramfs, image, history, music and accelerator.

    What can be made at once is. pinned: the kernel to resolve for a variant.
    """

    def initrds_and_accelerator() -> tuple[dict[Boot, Path], str, str]:
        initrds = {
            (spec, swap, more): timed(
                f"initramfs of {kernel_of[spec].label}",
                functools.partial(
                    initramfs.build,
                    kernel_of[spec],
                    fs=options.fs,
                    crypt=options.crypt,
                    swap=swap,
                    more=more,
                ),
            )
            for spec, swap, more in dict.fromkeys(asked)
        }
        accel, why = timed(
            "whether KVM works here",
            lambda: probe.choose(
                accelerator(options), kernel_of[asked[0][0]].image, initrds[asked[0]]
            ),
        )
        return initrds, accel, why

    def history_image() -> Path | None:
        if not options.gitks:
            return None
        return disk.history_disk(repo or history.build(options.commits))

    remote = options.music if (options.music or "").startswith("rsync://") else None
    say("making ready:")
    # What the user named comes first: if it will not do, nothing else has to be built to say so.
    repo = history.use(Path(options.repo)) if options.repo else None
    source = remote or str(music_folder(options))
    specs = [pinned(variant) for variant in options.variants]
    kernel_of = {
        spec: timed(
            f"kernel {spec}", functools.partial(kernels.resolve, spec, mirror=options.mirror)
        )
        for spec in dict.fromkeys(specs)
    }
    alone = [options.of(variant) for variant in options.variants]
    asked: list[Boot] = []
    for spec, variant, one in zip(specs, options.variants, alone, strict=True):
        workload = registry.find(one.workload)
        asked.append((spec, variant.swap, workload.modules))
        kconfig.check(
            kernel_of[spec],
            options.fs,
            options.crypt,
            variant.swap,
            workload=workload.name,
            needs=workload.config,
        )
    with ending_children(), concurrent.futures.ThreadPoolExecutor() as pool:
        accel_job = pool.submit(initrds_and_accelerator)
        image_job = pool.submit(
            timed,
            "guest image",
            lambda: {
                more: image.build(more, mirror=options.mirror)
                for more in registry.packages_of(options)
            },
        )
        history_job = pool.submit(timed, "history", history_image)
        compiled = pool.submit(timed, "observers", observers.program)
        jobs: list[concurrent.futures.Future[Any]] = [accel_job, image_job, history_job, compiled]
        concurrent.futures.wait(jobs, return_when=concurrent.futures.FIRST_EXCEPTION)
        for job in jobs:
            if job.done():
                job.result()
    initrds, accel, why = accel_job.result()
    say(f"  accelerator: {accel} ({why})")
    clock = timing(options, accel)
    say(f"  machine: {options.machine}, on the {clock.clock}'s clock ({clock.why})")
    changed = machine_model.changed(options.machine, options.in_machine)
    if clock.clock != GUEST and "cpu_mips" in changed:
        say(f"  cpu_mips {options.cpu_mips} does not hold there: the CPU is as fast as the host's")
    music_image = disk.music_disk(Path(source)) if clock.clock == GUEST else None
    return [
        Ready(
            variant,
            Guest(
                kernel=kernel_of[spec],
                initrd=initrds[boot],
                root_image=image_job.result()[registry.packages(one.workload)],
                history_image=history_job.result() if one.gitks else None,
                music=source,
                accel=accel,
                accel_reason=why,
                qemu_version=probe.qemu_version(),
                memory=one.memory,
                cpus=options.cpus,
                disk_iops=options.disk_iops,
                disk_bps=options.disk_bps,
                append=variant.append,
                machine=machine_model.name_of(options.machine),
                changed=changed,
                clock=clock.clock,
                clock_reason=clock.why,
                mips=options.cpu_mips,
                disk=clock.disk,
                library=clock.library,
                music_image=music_image,
                more_disks=registry.find(one.workload).more_disks,
            ),
        )
        for variant, spec, boot, one in zip(options.variants, specs, asked, alone, strict=True)
    ]
