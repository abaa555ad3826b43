# SPDX-License-Identifier: GPL-2.0-or-later
"""A model of disks inside QEMU: the library of disk_library/, made here, and what it is told.

QEMU's own throttle counts requests on the host's clock, lets a tenth of a second's worth of them
pass at once, and makes a request that goes on where the last one ended as dear as any other.
"""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from errors import UserError
from setup import cache
from setup.userland import tools
from vm.emulator import Emulator

SOURCES = Path(__file__).with_name("disk_library")
COMPILE = ("gcc", "-O2", "-Wall", "-shared", "-fPIC", "-fvisibility=hidden")
LIBRARIES = ("-luring", "-lpthread")
PROBE_S = 30.0
SAYS = "disk model: on"
TELLING = ("cannot find", "error")  # in the line that says most of why it failed


@dataclass(frozen=True)
class DiskModel:
    """A disk: iops requests of no length a second, one after the other at places not foreseen.

    bytes_per_s: of its interface, or of the platter under its head. parallel: accesses at a time,
    of a disk that does not rotate; depth and queues: what the guest's driver is told.
    """

    rotates: bool
    iops: int
    bytes_per_s: int
    parallel: int
    depth: int
    queues: int

    def words(self, file: int) -> str:
        """What the library is told of the disk; file: a descriptor of it."""
        found = os.fstat(file)
        numbers = (found.st_dev, found.st_ino, int(self.rotates), self.parallel)
        words = [*numbers, 1_000_000_000 // self.iops, self.bytes_per_s]
        return " ".join(map(str, words))


def environment(disks: Sequence[tuple[DiskModel, int]]) -> dict[str, str]:
    """What the library is told of several disks: the model of each, and a descriptor of it."""
    return {"DISK_MODEL": ";".join(one.words(file) for one, file in disks)} if disks else {}


class Unusable(Exception):
    """Why there can be no such disk here, in one line."""


def library(emulator: Emulator) -> Path:
    """The compiled library, from the cache if it is there, tried with this QEMU.

    Unusable if it cannot be compiled here, or if QEMU does not take it.
    """
    if " " in str(cache.place()) or ":" in str(cache.place()):
        raise Unusable(f"no library can be preloaded from {cache.place()}: a blank or colon in it")
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
    """Unusable if this QEMU ends for it, cannot count instructions, or has no io_uring."""
    with tempfile.NamedTemporaryFile(dir=made.parent) as disk:
        disk.truncate(1 << 20)
        command = [*emulator.command(made)]
        command += ["-machine", "none", "-nodefaults", "-display", "none", "-monitor", "stdio"]
        command += ["-accel", "tcg,thread=single", "-icount", "shift=1,sleep=off,align=off"]
        command += ["-drive", f"if=none,id=disk,file={disk.name},format=raw,aio=io_uring"]
        model = DiskModel(True, 100, 1 << 20, 1, 32, 1)
        told = {**emulator.environment(made), "DISK_MODEL_SAY": "1"}
        told |= environment([(model, disk.fileno())])
        what = "QEMU does not take the disk model"
        # What the loader cannot take it leaves out, and says so.
        if SAYS not in (said := _run(command, told, what, "quit\n")):
            raise Unusable(f"{what}: {(said.strip().splitlines() or ['not a word'])[0]}")


def _run(command: list[str], environment: dict[str, str], what: str, said: str = "") -> str:
    """What it said on stderr."""
    try:
        done = subprocess.run(
            command,
            input=said,
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
