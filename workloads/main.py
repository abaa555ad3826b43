# SPDX-License-Identifier: GPL-2.0-or-later
"""run_test.sh on the host: makes ready, runs, reports."""

import concurrent.futures
import contextlib
import functools
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from setup import cache, disk, history, image, initramfs, kconfig, kernels
from setup.errors import Exit, run_command
from vm import probe, session
from workloads import machine_lock, on_device
from workloads.campaign import Campaign
from workloads.identity import identified
from workloads.options import Options, parse
from workloads.plan import Variant
from workloads.runner import Outcome, Runner, say

T = TypeVar("T")
SCRATCH_BYTES = 3 << 30
RESULT_BYTES = 64 << 20


class Stopped:
    """Remembers that SIGINT, SIGTERM or SIGHUP came, from the moment it is armed."""

    def __init__(self) -> None:
        self._came = False

    def __call__(self) -> bool:
        return self._came

    @contextlib.contextmanager
    def armed(self) -> Iterator["Stopped"]:
        """Within: the signals are a wish to stop; else SIGTERM and SIGHUP act as Ctrl-C does."""
        numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
        before = [signal.signal(number, self._handle) for number in numbers]
        try:
            yield self
        finally:
            for number, handler in zip(numbers, before, strict=True):
                signal.signal(number, handler)

    def _handle(self, number: int, frame: Any) -> None:
        self._came = True


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
) -> list[session.Guest]:
    """For each variant a guest: kernel, initramfs, image, history, music and accelerator.

    What can be made at once is. pinned: the kernel to resolve for a variant.
    """
    p = options.parameters

    def initrds_and_accelerator() -> tuple[dict[str, Path], str, str]:
        initrds = {
            spec: timed(
                f"initramfs of {kernel.label}",
                functools.partial(initramfs.build, kernel, fs=p.fs, crypt=p.crypt),
            )
            for spec, kernel in kernel_of.items()
        }
        spec, kernel = next(iter(kernel_of.items()))
        accel, why = timed(
            "whether KVM works here",
            lambda: probe.choose(options.accel, kernel.image, initrds[spec]),
        )
        return initrds, accel, why

    def history_image() -> Path:
        return disk.history_disk(repo or history.build(p.commits))

    remote = options.music if (options.music or "").startswith("rsync://") else None
    say("making ready:")
    # What the user named comes first: if it will not do, nothing else has to be built to say so.
    repo = history.use(Path(options.repo)) if options.repo else None
    music = remote or str(on_device.music_folder(options))
    specs = [pinned(variant) for variant in options.variants]
    kernel_of = {
        spec: timed(
            f"kernel {spec}", functools.partial(kernels.resolve, spec, mirror=options.mirror)
        )
        for spec in dict.fromkeys(specs)
    }
    for kernel in kernel_of.values():
        kconfig.check(kernel, p.fs, p.crypt)
    with ending_children(), concurrent.futures.ThreadPoolExecutor() as pool:
        accel_job = pool.submit(initrds_and_accelerator)
        image_job = pool.submit(timed, "guest image", lambda: image.build(mirror=options.mirror))
        history_job = pool.submit(timed, "history", history_image)
        jobs: list[concurrent.futures.Future[Any]] = [accel_job, image_job, history_job]
        concurrent.futures.wait(jobs, return_when=concurrent.futures.FIRST_EXCEPTION)
        for job in jobs:
            if job.done():
                job.result()
    initrds, accel, why = accel_job.result()
    say(f"  accelerator: {accel} ({why})")
    return [
        session.Guest(
            variant=variant,
            kernel=kernel_of[spec],
            initrd=initrds[spec],
            root_image=image_job.result(),
            history_image=history_job.result(),
            music=music,
            accel=accel,
            accel_reason=why,
            qemu_version=probe.qemu_version(),
        )
        for variant, spec in zip(options.variants, specs, strict=True)
    ]


def in_vms(options: Options, stopped: Stopped, command: list[str]) -> Outcome:
    """The campaign, in VMs: every run that it still lacks."""
    cache.sweep("vm-", "probe-")
    opened = Campaign(options, command)
    session.check_space(cache.root(), SCRATCH_BYTES, "the VM's throw-away disk")
    session.check_space(opened.path.resolve(), RESULT_BYTES, "a result")
    guests = make_ready(options, opened.pinned)
    variants = opened.enter([(guest.variant, guest.kernel) for guest in guests])
    by_label = {
        str(variant.label): replace(guest, variant=variant)
        for variant, guest in zip(variants, guests, strict=True)
    }
    with stopped.armed():
        return Runner(options, opened, by_label, stopped).go()


def report(folder: Path) -> int:
    """Draw the campaign's pictures and print its summary; data flows only one way: a process."""
    summary = folder / "report" / "summary.txt"
    # What cannot be drawn or compared must not hide what was measured, nor an old summary show.
    summary.unlink(missing_ok=True)
    done = subprocess.run([sys.executable, "-m", "graphs", str(folder)], check=False)
    if summary.exists():
        say(f"\n{summary.read_text().rstrip()}")
    return done.returncode


def exit_status(outcome: Outcome, interrupted: bool) -> Exit:
    """run_test.sh's status for how its runs ended."""
    if interrupted:
        return Exit.INTERRUPTED
    if "aborted" in outcome.states:
        return Exit.MISSING
    return Exit.KERNEL_LOST if {"hung", "panicked", "lost"} & set(outcome.states) else Exit.OK


def main() -> int:
    """Everything between the command line and the exit status."""
    argv = sys.argv[1:]
    options = identified(parse(argv))
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)
    stopped = Stopped()
    with machine_lock.held():
        if options.device is not None:
            run_dir, state, why = on_device.run(options, stopped, argv)
            say(f"{run_dir}: {state}: {why}")
            outcome = Outcome(run_dir.parent.parent, [state])
        else:
            outcome = in_vms(options, stopped, argv)
    drawn = report(outcome.folder)
    if outcome.left:
        say(f"\n{outcome.left}\n  ./run_test.sh --resume {shlex.quote(str(outcome.folder))}")
    return int(exit_status(outcome, stopped())) or (int(Exit.MISSING) if drawn else 0)


if __name__ == "__main__":
    sys.exit(run_command("run_test.sh", main))
