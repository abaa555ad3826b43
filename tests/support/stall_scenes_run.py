# SPDX-License-Identifier: GPL-2.0-or-later
"""One boot in which a victim stalls in each way (tests/guest/stall_run.py), and its run folders."""

import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from contract.run_record import read_events, write_meta, write_status
from run.arguments import parse
from setup import cache, disk, guest_suite, image, initramfs, kernels
from tests.support.vms import FOR_TESTS, must_be_the_kernels
from vm import disk_model, emulator, room, session
from vm.disk_spec import DiskModel
from vm.guest import append
from vm.machine import running
from vm.qemu import Disk, Spec
from vm.results_memory import appending

# A quarter of a second for each request, wherever it is.
SLOW = DiskModel(rotates=False, iops=4, bytes_per_s=60_000_000, parallel=1, depth=32, queues=1)
SLOW_BYTES = 1 << 30
MEMORY = 512 << 20
MIPS = 500


def play(kernel_spec: str, out: Path, scenes: list[str], deadline_s: float) -> dict[str, Any]:
    """Boot, play the scenes (all if none is named), unpack their runs in out.

    Scene -> its event, of those that were played; its `run` is the folder.
    """
    kernel = kernels.resolve(kernel_spec)
    initrd, root = initramfs.build(kernel), image.build()
    out.mkdir(parents=True, exist_ok=True)
    with (
        cache.scratch(session.SCRATCH) as scratch,
        room.work_disk(scratch) as work,
        room.copied_disk(scratch, root) as root_copy,
        appending(out, ["events.jsonl", "runs.tar"]) as memory,
    ):
        command = scratch / "run" / "command"
        command.parent.mkdir()
        program = "python3 /suite/tests/guest/stall_run.py"
        command.write_text(f"{program} {shlex.join(scenes)}\n")
        job = scratch / "job.img"
        disk.job_disk(job, guest_suite.folder(FOR_TESTS), {"run": command.parent})
        with tempfile.NamedTemporaryFile(dir=scratch) as slow:
            slow.truncate(SLOW_BYTES)
            spec = Spec(
                emulator=emulator.find(),
                accel="tcg",
                kernel=kernel.image,
                initrd=initrd,
                append=append("tcg"),
                memory=MEMORY,
                cpus=1,
                console_log=out / "console.log",
                disks=[
                    Disk("root", "/dev/fdset/2"),
                    Disk("job", str(job), read_only=True),
                    Disk("work", "/dev/fdset/1"),
                    Disk("slow", slow.name, model=SLOW, descriptor=slow.fileno()),
                ],
                results=memory.path,
                fdsets={1: work, 2: root_copy},
                mips=MIPS,
                library=disk_model.library(emulator.find()),
            )
            with running(spec, scratch) as machine:
                until = time.monotonic() + deadline_s
                while machine.alive and time.monotonic() < until:
                    time.sleep(0.2)
    must_be_the_kernels(out)
    return _unpacked(kernel_spec, out)


def _unpacked(label: str, out: Path) -> dict[str, Any]:
    # Its status says nothing: if the guest was ended in the middle, what is whole counts.
    subprocess.run(["tar", "-xf", "runs.tar"], cwd=out, capture_output=True, check=False)
    (out / "runs.tar").unlink(missing_ok=True)
    played = {
        event["name"]: event
        for event in read_events(out / "events.jsonl")
        if event["event"] == "scene"
    }
    for run in {event["run"] for event in played.values()}:
        folder = out / run
        if not folder.is_dir():
            continue
        parameters = parse([]).parameters | {"gitk": 1}
        write_meta(folder, {"label": label, "variant": run, "parameters": parameters})
        ended = [e["elapsed"] for e in read_events(folder / "events.jsonl") if e["event"] == "end"]
        write_status(folder, "completed", "played", elapsed_s=ended[-1] if ended else None)
    return played


if __name__ == "__main__":
    began = time.monotonic()
    for name, event in play(sys.argv[1], Path(sys.argv[2]), sys.argv[3:], 400).items():
        print(name, event)
    print(f"{time.monotonic() - began:.0f} s")
