# SPDX-License-Identifier: GPL-2.0-or-later
"""Prepares on the host what runs in VMs need, before the first run begins."""

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
from vm.guest import Guest, GuestFiles, Hardware
from vm.qemu import GUEST
from workloads import registry
from workloads.workload import Workload

T = TypeVar("T")
Boot = tuple[str, Swap, tuple[str, ...]]  # kernel, swap and modules: what an initramfs depends on


class PreparedVariant(NamedTuple):
    """A variant, and the guest for its runs."""

    variant: Variant
    guest: Guest


class ResolvedVariant(NamedTuple):
    """A variant with its own options and its resolved kernel."""

    variant: Variant
    options: Options
    workload: Workload
    spec: str  # the kernel as given
    kernel: Kernel

    @property
    def boot(self) -> Boot:
        """The key of its initramfs."""
        return self.spec, self.variant.swap, self.modules

    @property
    def modules(self) -> tuple[str, ...]:
        """The kernel modules that its workload and its remedy need."""
        treated = remedy.of_variant(self.variant)
        return (*self.workload.modules, *(treated.modules if treated else ()))

    def initrd(self) -> Path:
        """Its initramfs, built if it is not in the cache."""
        fs, crypt, swap = self.options.fs, self.options.crypt, self.variant.swap
        return initramfs.build(self.kernel, fs=fs, crypt=crypt, swap=swap, more=self.modules)


class Artifacts(NamedTuple):
    """The parts of the variants' guests; images: by their packages."""

    initrds: dict[Boot, Path]
    accel: str
    accel_reason: str
    images: dict[tuple[str, ...], Path]
    history: Path | None
    suite: Path


def say(text: str) -> None:
    """Print a line; if stdout is closed, the measurement goes on."""
    with contextlib.suppress(OSError):
        print(printable(text), flush=True)


def music_source(options: Options) -> str:
    """The music: a rsync:// URL, the user's folder, or a generated folder."""
    return str(checks.music_folder(options) or options.music or music.build())


def timed(what: str, work: Callable[[], T]) -> T:
    """Run work and return its result; prints its duration if it took 0.5 s or longer."""
    began = time.monotonic()
    result = work()
    took = time.monotonic() - began
    if took >= 0.5:
        say(f"  {what}: ready after {took:.1f} s")
    return result


def end_children() -> None:
    """Send SIGTERM to all our child processes."""
    for children in Path("/proc/self/task").glob("*/children"):
        with contextlib.suppress(OSError):
            for pid in children.read_text().split():
                os.kill(int(pid), signal.SIGTERM)


@contextlib.contextmanager
def ending_children() -> Iterator[None]:
    """Within: Ctrl-C and SIGTERM also end our child processes, for which threads wait."""
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
) -> list[PreparedVariant]:
    """A guest for each variant: kernel, initramfs, image, history, music and accelerator.

    Makes these in parallel. pinned: returns the kernel to resolve for a variant. elsewhere: other
    machines do the runs; then --accel kvm refers to them.
    """
    say("making ready, and checking what is in the cache:")
    # The user's own data comes first: if it is invalid, nothing has to be built.
    repo = history.use(Path(options.repo)) if options.repo else None
    source = music_source(options)
    asked, made = _made(options, pinned, repo, elsewhere)
    say(f"  accelerator: {made.accel} ({made.accel_reason})")
    chosen = timing(options, made.accel)
    say(f"  machine: {options.machine}, on the {chosen.clock}'s clock ({chosen.why})")
    changed = machine_model.changed(options.machine, options.in_machine)
    if chosen.clock != GUEST and "cpu_mips" in changed:
        say(f"  cpu_mips {options.cpu_mips} is ignored: on the host's clock the CPU is the host's")
    music_image = disk.music_disk(Path(source)) if chosen.clock == GUEST else None
    return [
        PreparedVariant(
            resolved.variant,
            Guest(
                kernel=resolved.kernel,
                files=GuestFiles(
                    initrd=made.initrds[resolved.boot],
                    root_image=made.images[image_packages(options, resolved.workload.name)],
                    suite=made.suite,
                    history_image=made.history if resolved.options.gitks else None,
                    music_image=music_image,
                ),
                hardware=Hardware(
                    memory=resolved.options.memory,
                    cpus=options.cpus,
                    machine=machine_model.name_of(options.machine),
                    changed=changed,
                    mips=options.cpu_mips,
                    disk_iops=options.disk_iops,
                    disk_bps=options.disk_bps,
                    more_disks=resolved.workload.more_disks,
                ),
                timing=chosen,
                emulator=emulator.find(options.qemu),
                accel=made.accel,
                accel_reason=made.accel_reason,
                music=source,
                append=resolved.variant.append,
            ),
        )
        for resolved in asked
    ]


def another(
    base: PreparedVariant,
    variant: Variant,
    options: Options,
    progress: Callable[[Progress], None] | None = None,
) -> PreparedVariant:
    """The same guest with another kernel; may be called from any thread, and may take long.

    NotBuilt if the kernel cannot be built; another UserError if it cannot be used.
    """
    alone = options.of(variant)
    kernel = kernels.resolve(variant.kernel, mirror=options.mirror, progress=progress)
    asked = ResolvedVariant(variant, alone, registry.find(alone.workload), variant.kernel, kernel)
    checks.check_config(alone, variant, kernel)
    files = base.guest.files._replace(initrd=asked.initrd())
    return PreparedVariant(variant, replace(base.guest, kernel=kernel, files=files))


def chosen_accelerator(
    options: Options, kernel: Path, initrd: Path, elsewhere: bool = False
) -> tuple[str, str]:
    """`kvm` or `tcg`, and why; KVM is tried, with this kernel, only if it may be used."""
    accel, why = accelerator(options)
    if accel == "kvm" and elsewhere:
        return accel, "asked for; each host tests it first"
    if accel == "tcg":
        return accel, why
    qemu = emulator.find(options.qemu)
    return timed("whether KVM works here", lambda: probe.choose(qemu, accel, kernel, initrd))


def _resolved(options: Options, pinned: Callable[[Variant], str]) -> list[ResolvedVariant]:
    """The variants with their kernels, each resolved once; UserError if a kernel lacks something.

    Leaves out variants whose kernel cannot be built, or does not support their remedy.
    """

    def resolve(spec: str) -> Kernel:
        found = functools.partial(kernels.resolve, spec, mirror=options.mirror)
        return timed(f"kernel {spec}", found)

    specs = [pinned(variant) for variant in options.variants]
    resolved = built.resolve_each(specs, resolve, folder(options), say)
    alone = [options.of(variant) for variant in options.variants]
    asked = [
        ResolvedVariant(variant, one, registry.find(one.workload), spec, resolved.kernels[spec])
        for variant, one, spec in zip(options.variants, alone, specs, strict=True)
        if spec in resolved.kernels
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
    """Additional Debian packages in the image for guests of this workload."""
    return tuple(
        sorted({*registry.packages(workload, options.screen), *remedy.packages(options.variants)})
    )


def images_packages(options: Options) -> list[tuple[str, ...]]:
    """The additional packages of each image that the campaign's guests need."""
    return list(dict.fromkeys(image_packages(options, workload) for workload in options.workloads))


def _made(
    options: Options, pinned: Callable[[Variant], str], repo: Path | None, elsewhere: bool
) -> tuple[list[ResolvedVariant], Artifacts]:
    """The variants and the parts of their guests, made in parallel; the first failure ends it."""

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
    return kernels_job.result(), Artifacts(
        *accel_job.result(), image_job.result(), history_job.result(), suite_job.result()
    )


def _wait_for(jobs: list[concurrent.futures.Future[Any]]) -> None:
    """Wait for all jobs; after a failure end the others' child processes and raise it."""
    done, running = concurrent.futures.wait(jobs, return_when=concurrent.futures.FIRST_EXCEPTION)
    failed = next((job for job in jobs if job in done and job.exception()), None)
    while failed and running:
        end_children()
        running = concurrent.futures.wait(running, timeout=0.1).not_done
    if failed:
        failed.result()


def _initrds(asked: list[ResolvedVariant]) -> dict[Boot, Path]:
    """The initramfs for each combination of kernel, swap and modules."""
    return {
        boot: timed(f"initramfs of {resolved.kernel.label}", resolved.initrd)
        for boot, resolved in {resolved.boot: resolved for resolved in asked}.items()
    }
