# SPDX-License-Identifier: GPL-2.0-or-later
"""Jobs whose guests are small files of a cache, for hosts that play them (played_session)."""

from pathlib import Path
from typing import Any

from run.jobs.job import Job, Streams
from setup import cache
from setup.kernels import Kernel
from vm.emulator import Emulator
from vm.guest import Guest, GuestFiles, GuestJob, Hardware, Timing
from vm.qemu import GUEST


def in_cache(name: str, text: str) -> Path:
    """A file of the cache."""
    path = cache.root() / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def guest(label: str = "6.12", **hardware: Any) -> Guest:
    """A guest of files that are in the cache, and of a kernel that is elsewhere."""
    image = cache.place().parent / "elsewhere" / f"vmlinuz-{label}"
    image.parent.mkdir(parents=True, exist_ok=True)
    image.write_text(f"the kernel {label}")
    config = in_cache("kernels/k/config", "CONFIG_X=y\n")
    kernel = Kernel(
        f"debian:{label}",
        label,
        f"{label}-amd64",
        image,
        None,
        config,
        cache.file_digest(image),
        cache.file_digest(config),
        f"{label}-1",
    )
    return Guest(
        kernel=kernel,
        files=GuestFiles(
            initrd=in_cache("initramfs/i", "an initramfs"),
            root_image=in_cache("images/r", "a root"),
            suite=in_cache("suites/s", "a suite"),
            music_image=in_cache("music-disks/m", "music"),
        ),
        hardware=Hardware(**{"memory": 230 << 20, "cpus": 1, **hardware}),
        timing=Timing(GUEST, "played"),
        emulator=Emulator("qemu", "7.2", Path("/")),
        accel="tcg",
        accel_reason="played",
        music="/music",
    )


def job(label: str = "6.12", number: int = 1, **hardware: Any) -> Job:
    """A job of that guest."""
    guest_job = GuestJob("run_test.sh\n", ["events.jsonl"], 300, 60, ("gitk-1",), seed=number)
    facts = {"label": label, "order": number, "parameters": {"commits": 10}}
    streams = Streams(("gitk-1",), 10, 1, 300.0)
    return Job(label, number, guest(label, **hardware), guest_job, facts, streams)
