# SPDX-License-Identifier: GPL-2.0-or-later
"""run_test.sh on the host: makes ready, runs, reports."""

import concurrent.futures
import contextlib
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from setup import cache, disk, history, image, initramfs, kconfig, kernels
from setup.errors import Exit, run_command
from vm import probe, session
from workloads import campaign, machine_lock, on_device
from workloads.live import View
from workloads.options import Options, parse

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


def say(text: str) -> None:
    """Print a line; a reader that went away is no reason to end a measurement."""
    with contextlib.suppress(OSError):
        print(text, flush=True)


def timed(what: str, work: Callable[[], T]) -> T:
    """Run work, saying on one line when it is done and how long it took, if that was long."""
    began = time.monotonic()
    result = work()
    took = time.monotonic() - began
    if took >= 0.5:
        say(f"  {what}: ready after {took:.1f} s")
    return result


def make_ready(options: Options) -> session.Guest:
    """Kernel, initramfs, image, history, music and accelerator; what can be is made at once."""
    p = options.parameters

    def initrd_and_accelerator() -> tuple[Path, str, str]:
        initrd = timed("initramfs", lambda: initramfs.build(kernel, fs=p.fs, crypt=p.crypt))
        accel, why = timed(
            "whether KVM works here", lambda: probe.choose(options.accel, kernel.image, initrd)
        )
        return initrd, accel, why

    def history_image() -> Path:
        return disk.history_disk(repo or history.build(p.commits))

    remote = options.music if (options.music or "").startswith("rsync://") else None
    say("making ready:")
    # What the user named comes first: if it will not do, nothing else has to be built to say so.
    repo = history.use(Path(options.repo)) if options.repo else None
    music = remote or str(on_device.music_folder(options))
    kernel = timed(
        f"kernel {options.kernel}", lambda: kernels.resolve(options.kernel, mirror=options.mirror)
    )
    kconfig.check(kernel, p.fs, p.crypt)
    with concurrent.futures.ThreadPoolExecutor() as pool:
        accel_job = pool.submit(initrd_and_accelerator)
        image_job = pool.submit(timed, "guest image", lambda: image.build(mirror=options.mirror))
        history_job = pool.submit(timed, "history", history_image)
        jobs: list[concurrent.futures.Future[Any]] = [accel_job, image_job, history_job]
        concurrent.futures.wait(jobs, return_when=concurrent.futures.FIRST_EXCEPTION)
        for job in jobs:
            if job.done():
                job.result()
    initrd, accel, why = accel_job.result()
    say(f"  accelerator: {accel} ({why})")
    return session.Guest(
        kernel=kernel,
        initrd=initrd,
        root_image=image_job.result(),
        history_image=history_job.result(),
        music=music,
        accel=accel,
        accel_reason=why,
        qemu_version=probe.qemu_version(),
    )


def in_vm(options: Options, folder: Path, stopped: Stopped) -> tuple[Path, str, str]:
    """One run in a VM: its folder, state and why."""
    session.check_space(cache.root(), SCRATCH_BYTES, "the VM's throw-away disk")
    session.check_space(folder.resolve(), RESULT_BYTES, "a result")
    cache.sweep("vm-", "probe-")
    guest = make_ready(options)
    variant = options.label or guest.kernel.label
    p = options.parameters
    commits = p.commits or history.count(Path(str(options.repo)))
    facts = {
        "suite": campaign.suite_commit(),
        "label": variant,
        "variant": variant,
    }
    with stopped.armed():
        run_dir = campaign.new_run(folder, variant, options)
        say(f"run {run_dir.name} of {variant}: {guest.kernel.release} in {run_dir}")
        with View(variant, run_dir, p.gitk, commits, p.passes) as view:
            state, why = session.run(
                options, guest, run_dir, tick=view.tick, stopped=stopped, facts=facts
            )
    return run_dir, state, why


def report(folder: Path) -> int:
    """Draw the campaign's pictures and print its summary; data flows only one way: a process."""
    done = subprocess.run([sys.executable, "-m", "graphs", str(folder)], check=False)
    summary = folder / "report" / "summary.txt"
    if done.returncode == 0 and summary.exists():
        say(f"\n{summary.read_text().rstrip()}")
    return done.returncode


def exit_status(state: str, interrupted: bool) -> Exit:
    """run_test.sh's status for how a run ended."""
    if interrupted:
        return Exit.INTERRUPTED
    if state in ("hung", "panicked", "lost"):
        return Exit.KERNEL_LOST
    return Exit.MISSING if state == "aborted" else Exit.OK


def main() -> int:
    """Everything between the command line and the exit status."""
    options = parse(sys.argv[1:])
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)
    folder = campaign.folder(options)
    stopped = Stopped()
    with machine_lock.held():
        if options.device is not None:
            run_dir, state, why = on_device.run(options, folder, stopped)
        else:
            run_dir, state, why = in_vm(options, folder, stopped)
    say(f"{run_dir}: {state}: {why}")
    drawn = report(folder)
    return int(exit_status(state, stopped())) or (int(Exit.MISSING) if drawn else 0)


if __name__ == "__main__":
    sys.exit(run_command("run_test.sh", main))
