# SPDX-License-Identifier: GPL-2.0-or-later
"""What runs in VMs need, made ready on the host before the first of them begins."""

import concurrent.futures
import contextlib
import functools
import os
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from contract import machine_model, remedy
from contract.options import Options
from contract.swap import Swap
from contract.variant import Variant
from errors import printable
from run import checks
from run.changed_kernels import built
from run.clock import accelerator, timing
from run.run_folders import folder
from setup import disk, guest_suite, history, image, initramfs, kconfig, kernels, music, observers
from setup.kernels import Kernel
from setup.trees.progress import Progress
from setup.userland import tools
from vm import emulator, probe
from vm.guest import Guest
from vm.qemu import GUEST
from workloads import registry
from workloads.workload import Workload

T = TypeVar("T")
Boot = tuple[str, Swap, tuple[str, ...]]  # kernel, swap and modules: what an initramfs is made of


class Ready(NamedTuple):
    """A variant, and the guest that its runs are done in."""

    variant: Variant
    guest: Guest


class Asked(NamedTuple):
    """A variant with its options, as if there were no other, and with its kernel."""

    variant: Variant
    options: Options
    workload: Workload
    spec: str  # the kernel that was asked for
    kernel: Kernel

    @property
    def boot(self) -> Boot:
        """What tells its initramfs from others."""
        return self.spec, self.variant.swap, self.modules

    @property
    def modules(self) -> tuple[str, ...]:
        """Of the kernel, that its workload and its remedy need."""
        treated = remedy.of_variant(self.variant)
        return (*self.workload.modules, *(treated.modules if treated else ()))

    def initrd(self) -> Path:
        """Its initramfs, built if it is not in the cache."""
        fs, crypt, swap = self.options.fs, self.options.crypt, self.variant.swap
        return initramfs.build(self.kernel, fs=fs, crypt=crypt, swap=swap, more=self.modules)


class Made(NamedTuple):
    """What the variants' guests are put together from; images: by their packages."""

    initrds: dict[Boot, Path]
    accel: str
    accel_reason: str
    images: dict[tuple[str, ...], Path]
    history: Path | None
    suite: Path


def say(text: str) -> None:
    """Print a line; a reader that went away is no reason to end a measurement."""
    with contextlib.suppress(OSError):
        print(printable(text), flush=True)


def music_source(options: Options) -> str:
    """Where the music is: rsync:// of another machine, the user's folder, or a made one."""
    return str(checks.music_folder(options) or options.music or music.build())


def timed(what: str, work: Callable[[], T]) -> T:
    """Run work, saying on one line when it is done and how long it took, if that was long."""
    began = time.monotonic()
    result = work()
    took = time.monotonic() - began
    if took >= 0.5:
        say(f"  {what}: ready after {took:.1f} s")
    return result


def end_children() -> None:
    """Ask every child process of ours to end."""
    for children in Path("/proc/self/task").glob("*/children"):
        with contextlib.suppress(OSError):
            for pid in children.read_text().split():
                os.kill(int(pid), signal.SIGTERM)


@contextlib.contextmanager
def ending_children() -> Iterator[None]:
    """Within: Ctrl-C or SIGTERM ends our child processes too; the threads wait for theirs."""
    before = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)

    def end(number: int, frame: Any) -> None:
        end_children()
        raise KeyboardInterrupt

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, end)
    try:
        yield
    finally:
        for number, handler in zip((signal.SIGTERM, signal.SIGINT), before, strict=True):
            signal.signal(number, handler)


def make_ready(
    options: Options,
    pinned: Callable[[Variant], str] = lambda variant: variant.kernel,
    *,
    elsewhere: bool = False,
) -> list[Ready]:
    """For each variant a guest: kernel, initramfs, image, history, music and accelerator.

    What can be made at once is. pinned: the kernel to resolve for a variant. elsewhere: the runs
    are done on other machines, which --accel kvm is about then.
    """
    say("making ready, and checking what is in the cache:")
    # What the user named comes first: if it will not do, nothing else has to be built to say so.
    repo = history.use(Path(options.repo)) if options.repo else None
    source = music_source(options)
    asked, made = _made(options, pinned, repo, elsewhere)
    say(f"  accelerator: {made.accel} ({made.accel_reason})")
    clock = timing(options, made.accel)
    say(f"  machine: {options.machine}, on the {clock.clock}'s clock ({clock.why})")
    changed = machine_model.changed(options.machine, options.in_machine)
    if clock.clock != GUEST and "cpu_mips" in changed:
        say(f"  cpu_mips {options.cpu_mips} does not hold there: the CPU is as fast as the host's")
    music_image = disk.music_disk(Path(source)) if clock.clock == GUEST else None
    return [
        Ready(
            one.variant,
            Guest(
                kernel=one.kernel,
                initrd=made.initrds[one.boot],
                root_image=made.images[image_packages(options, one.workload.name)],
                suite=made.suite,
                history_image=made.history if one.options.gitks else None,
                music=source,
                accel=made.accel,
                accel_reason=made.accel_reason,
                emulator=emulator.find(options.qemu),
                memory=one.options.memory,
                cpus=options.cpus,
                disk_iops=options.disk_iops,
                disk_bps=options.disk_bps,
                append=one.variant.append,
                machine=machine_model.name_of(options.machine),
                changed=changed,
                clock=clock.clock,
                clock_reason=clock.why,
                mips=options.cpu_mips,
                disk=clock.disk,
                library=clock.library,
                music_image=music_image,
                more_disks=one.workload.more_disks,
            ),
        )
        for one in asked
    ]


def another(
    base: Ready,
    variant: Variant,
    options: Options,
    progress: Callable[[Progress], None] | None = None,
) -> Ready:
    """The same guest with another kernel; may be called from any thread, and takes its time.

    NotBuilt if it is to be built and cannot be; another UserError if it will not do.
    """
    alone = options.of(variant)
    kernel = kernels.resolve(variant.kernel, mirror=options.mirror, progress=progress)
    asked = Asked(variant, alone, registry.find(alone.workload), variant.kernel, kernel)
    checks.check_config(alone, variant, kernel)
    return Ready(variant, replace(base.guest, kernel=kernel, initrd=asked.initrd()))


def chosen_accelerator(
    options: Options, kernel: Path, initrd: Path, elsewhere: bool = False
) -> tuple[str, str]:
    """`kvm` or `tcg`, and why; KVM is tried, with this kernel, only where it would be used."""
    accel, why = accelerator(options)
    if accel == "kvm" and elsewhere:
        return accel, "asked for; each host tries it by its proof"
    if accel == "tcg":
        return accel, why
    qemu = emulator.find(options.qemu)
    return timed("whether KVM works here", lambda: probe.choose(qemu, accel, kernel, initrd))


def _resolved(options: Options, pinned: Callable[[Variant], str]) -> list[Asked]:
    """The variants with their kernels, each looked for once; UserError if one lacks a thing.

    One whose kernel cannot be built is not among them, nor one whose kernel cannot have its remedy.
    """

    def resolve(spec: str) -> Kernel:
        found = functools.partial(kernels.resolve, spec, mirror=options.mirror)
        return timed(f"kernel {spec}", found)

    specs = [pinned(variant) for variant in options.variants]
    found = built.found(specs, resolve, folder(options), say)
    alone = [options.of(variant) for variant in options.variants]
    asked = [
        Asked(variant, one, registry.find(one.workload), spec, found.kernels[spec])
        for variant, one, spec in zip(options.variants, alone, specs, strict=True)
        if spec in found.kernels
    ]
    able = []
    for one in asked:
        if lacking := kconfig.remedy_lacks(one.kernel, one.variant):
            say(f"  left out: {one.variant.remedy}: {one.kernel.label} lacks {lacking}")
            continue
        checks.check_config(one.options, one.variant, one.kernel)
        able.append(one)
    return able


def image_packages(options: Options, workload: str) -> tuple[str, ...]:
    """Debian's packages beside those that every guest has, in the image of this workload's."""
    return tuple(sorted({*registry.packages(workload), *remedy.packages(options.variants)}))


def images_packages(options: Options) -> list[tuple[str, ...]]:
    """Those of the images that the campaign's guests have, each image once."""
    return list(dict.fromkeys(image_packages(options, one) for one in options.workloads))


def _made(
    options: Options, pinned: Callable[[Variant], str], repo: Path | None, elsewhere: bool
) -> tuple[list[Asked], Made]:
    """The variants and all that is built or tried out, side by side; the first failure ends it."""

    def initrds_and_accelerator() -> tuple[dict[Boot, Path], str, str]:
        asked = kernels_job.result()
        tools_job.result()
        initrds = _initrds(asked)
        first = asked[0].kernel.image, initrds[asked[0].boot]
        return initrds, *chosen_accelerator(options, *first, elsewhere)

    def images() -> dict[tuple[str, ...], Path]:
        return {more: image.build(more, mirror=options.mirror) for more in images_packages(options)}

    def history_image() -> Path | None:
        if not options.gitks:
            return None
        tools_job.result()
        return timed("history", lambda: disk.history_disk(repo or history.build(options.commits)))

    def suite() -> Path:
        tools_job.result()
        timed("observers", observers.program)
        return guest_suite.folder()

    with ending_children(), concurrent.futures.ThreadPoolExecutor() as pool:
        tools_job = pool.submit(timed, "QEMU and compilers", lambda: tools.root(options.mirror))
        image_job = pool.submit(timed, "guest image", images)
        kernels_job = pool.submit(_resolved, options, pinned)
        accel_job = pool.submit(initrds_and_accelerator)
        history_job = pool.submit(history_image)
        suite_job = pool.submit(suite)
        jobs: list[concurrent.futures.Future[Any]] = [kernels_job, tools_job, accel_job, image_job]
        jobs += [history_job, suite_job]
        _wait_for(jobs)
    return kernels_job.result(), Made(
        *accel_job.result(), image_job.result(), history_job.result(), suite_job.result()
    )


def _wait_for(jobs: list[concurrent.futures.Future[Any]]) -> None:
    """Until all are done; the first failure ends the children of the others, and is raised."""
    done, running = concurrent.futures.wait(jobs, return_when=concurrent.futures.FIRST_EXCEPTION)
    failed = next((job for job in jobs if job in done and job.exception()), None)
    while failed and running:
        end_children()
        running = concurrent.futures.wait(running, timeout=0.1).not_done
    if failed:
        failed.result()


def _initrds(asked: list[Asked]) -> dict[Boot, Path]:
    """The initramfs of each kernel with what is to be loaded there, each once."""
    return {
        boot: timed(f"initramfs of {one.kernel.label}", one.initrd)
        for boot, one in {one.boot: one for one in asked}.items()
    }
