# SPDX-License-Identifier: GPL-2.0-or-later
"""Compiles the library of qemu_disk_model/, which models disks inside QEMU, and tries it out.

QEMU's own throttle does not model a disk: it counts requests on the host's clock, lets bursts of a
tenth of a second pass at once, and charges a sequential request as much as any other.
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

SOURCES = Path(__file__).with_name("qemu_disk_model")
COMPILE = ("gcc", "-O2", "-Wall", "-shared", "-fPIC", "-fvisibility=hidden")
LIBRARIES = ("-luring", "-lpthread")
PROBE_S = 30.0
# A trial guest that only waits for its disk: fast accesses, long instructions.
TRIAL_DISK = DiskModel(True, 10_000, 1 << 30, 1, 32, 1)
TRIAL_MIPS = 1
TRIAL_BYTES = 64 << 20
TELLING = ("cannot find", "error")  # words of the line that explains a failure best


class Unusable(Exception):
    """The disk model cannot be used here; the message is one line with the reason."""


def library(emulator: Emulator) -> Path:
    """The compiled library, tried with this QEMU; from the cache if it is there.

    Unusable if it cannot be compiled here, or if this QEMU does not work with it.
    """
    files = sorted(SOURCES.glob("*.[ch]"))
    text = [part for path in files for part in (path.name, path.read_text())]
    # Libraries that the user preloads into the host's QEMU take part in the trial.
    tried = (emulator.origin, emulator.version, emulator.environment().get("LD_PRELOAD", ""))
    name = cache.key(*COMPILE, *LIBRARIES, *text, tools.identity(), *tried) + ".so"

    def build(path: Path) -> None:
        _compile(files, path)
        _try(emulator, path)

    return cache.built("disk-model", name, build)


def _compile(files: Sequence[Path], target: Path) -> None:
    with tools.workplace() as place:
        for path in files:
            shutil.copy(path, place.folder)
        sources = [path.name for path in files if path.suffix == ".c"]
        command = [*COMPILE, "-o", target.name, *sources, *LIBRARIES]
        try:
            place.run(command, what="compiling the disk model")
        except UserError as error:
            raise Unusable(str(error)) from None
        shutil.move(place.folder / target.name, target)


def _try(emulator: Emulator, library_path: Path) -> None:
    """Unusable if this QEMU does not work with the library, or some requests bypass it.

    A tiny guest reads its disk and ends; the library reports how many requests it held.
    """
    what = "QEMU does not work with the disk model"
    with tempfile.NamedTemporaryFile(dir=library_path.parent) as file:
        requests = boot_sector.write(Path(file.name))
        disk = Disk("trial", file.name, model=TRIAL_DISK, descriptor=file.fileno())
        spec = Spec(
            emulator=emulator,
            accel="tcg",
            memory=TRIAL_BYTES,
            cpus=1,
            disks=[disk],
            mips=TRIAL_MIPS,
            library=library_path,
        )
        command = [*emulator.command(library_path), *machine_words(spec), *disk_words(disk, spec)]
        text = _run(command, spec.environment, what)
    if BEGINS not in text:
        # The loader skips a library that it cannot load, and prints why.
        raise Unusable(f"{what}: {(text.strip().splitlines() or ['it printed nothing'])[0]}")
    counts = served(text)
    if counts is None:
        raise Unusable(f"{what}: none of {requests} requests reached the library")
    if counts.requests != requests or counts.in_time != requests:
        raise Unusable(f"{what}: only {counts.in_time} of {requests} requests were held until due")


def _run(command: list[str], environment: dict[str, str], what: str) -> str:
    """Run QEMU; returns its stderr. Unusable if it fails or takes more than PROBE_S seconds."""
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
        telling = (line for word in TELLING for line in lines if word in line)
        raise Unusable(f"{what}: {next(telling, lines[-1])}")
    return done.stderr
