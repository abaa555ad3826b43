# SPDX-License-Identifier: GPL-2.0-or-later
"""A model of disks inside QEMU: the library of disk_library/, made here, and what it is told.

QEMU's own throttle counts requests on the host's clock, lets a tenth of a second's worth of them
pass at once, and makes a request that goes on where the last one ended as dear as any other.
"""

import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from errors import UserError
from setup import cache
from setup.userland import tools
from vm import boot_sector
from vm.disk_spec import BEGINS, DiskModel, served
from vm.emulator import Emulator
from vm.qemu import Disk, Spec, disk_words, machine_words

SOURCES = Path(__file__).with_name("disk_library")
COMPILE = ("gcc", "-O2", "-Wall", "-shared", "-fPIC", "-fvisibility=hidden")
LIBRARIES = ("-luring", "-lpthread")
PROBE_S = 30.0
# A guest that only waits for its disk, whose accesses are fast and whose instructions are long.
TRIAL_DISK = DiskModel(True, 10_000, 1 << 30, 1, 32, 1)
TRIAL_MIPS = 1
TRIAL_BYTES = 64 << 20
TELLING = ("cannot find", "error")  # in the line that says most of why it failed


class Unusable(Exception):
    """Why there can be no such disk here, in one line."""


def library(emulator: Emulator) -> Path:
    """The compiled library, from the cache if it is there, tried with this QEMU.

    Unusable if it cannot be compiled here, or if QEMU does not take it.
    """
    files = sorted(SOURCES.glob("*.[ch]"))
    text = [part for path in files for part in (path.name, path.read_text())]
    # What the user has preloaded into the host's QEMU is tried with it, and is another trial.
    tried = (emulator.origin, emulator.version, emulator.environment().get("LD_PRELOAD", ""))
    name = cache.key(*COMPILE, *LIBRARIES, *text, tools.identity(), *tried) + ".so"

    def build(path: Path) -> None:
        _compile(files, path)
        _try(emulator, path)

    return cache.built("disk-model", name, build)


def _compile(files: Sequence[Path], made: Path) -> None:
    with tools.workplace() as place:
        for path in files:
            shutil.copy(path, place.folder)
        sources = [path.name for path in files if path.suffix == ".c"]
        command = [*COMPILE, "-o", made.name, *sources, *LIBRARIES]
        try:
            place.run(command, what="compiling the disk model")
        except UserError as error:
            raise Unusable(str(error)) from None
        shutil.move(place.folder / made.name, made)


def _try(emulator: Emulator, made: Path) -> None:
    """Unusable if this QEMU does not take the library, or requests of its guest pass it by.

    A guest of some bytes reads its disk, and ends; the library says how many requests it held.
    """
    what = "QEMU does not take the disk model"
    with tempfile.NamedTemporaryFile(dir=made.parent) as file:
        requests = boot_sector.write(Path(file.name))
        disk = Disk("trial", file.name, model=TRIAL_DISK, descriptor=file.fileno())
        spec = Spec(
            emulator=emulator,
            accel="tcg",
            memory=TRIAL_BYTES,
            cpus=1,
            disks=[disk],
            mips=TRIAL_MIPS,
            library=made,
        )
        command = [*emulator.command(made), *machine_words(spec), *disk_words(disk, spec)]
        text = _run(command, spec.environment, what)
    if BEGINS not in text:
        # What the loader cannot take it leaves out, and says so.
        raise Unusable(f"{what}: {(text.strip().splitlines() or ['not a word'])[0]}")
    counts = served(text)
    if counts is None:
        raise Unusable(f"{what}: of {requests} requests none came to the library")
    if counts.requests != requests or counts.in_time != requests:
        raise Unusable(f"{what}: of {requests} requests {counts.in_time} were held to their time")


def _run(command: list[str], environment: dict[str, str], what: str) -> str:
    """What it said on stderr."""
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PROBE_S,
            env=environment,
        )
    except OSError as error:
        raise Unusable(f"{what}: {command[0]}: {error.strerror}") from None
    except subprocess.TimeoutExpired:
        raise Unusable(f"{what}: no answer within {PROBE_S:.0f} s") from None
    if done.returncode:
        lines = done.stderr.strip().splitlines() or [f"status {done.returncode}"]
        told = (one for word in TELLING for one in lines if word in one)
        raise Unusable(f"{what}: {next(told, lines[-1])}")
    return done.stderr
