# SPDX-License-Identifier: GPL-2.0-or-later
"""Finds the QEMU that runs the guests and says how to start it: the suite's own or the host's.

The suite's QEMU (setup.userland.tools) is started by its own loader with its own libraries. So it
needs neither root nor a namespace, and uses the host's file names.
"""

import functools
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from errors import UserError
from setup.userland import tools

SUITE, HOST = "suite", "host"
PROGRAM = "qemu-system-x86_64"
LOADER = "usr/lib64/ld-linux-x86-64.so.2"
LIBRARIES = ("lib/x86_64-linux-gnu", "usr/lib/x86_64-linux-gnu")
# Variables that would bring the host's libraries into the suite's QEMU.
LOADED = ("LD_PRELOAD", "LD_LIBRARY_PATH", "LD_AUDIT")


# Characters that the loader takes for the end of a path in a list, or for a variable.
NOT_FOR_LOADER = frozenset(" :;$")


@dataclass(frozen=True)
class Emulator:
    """A QEMU. root: the folder of the suite's own QEMU; None: program is the host's."""

    program: str
    version: str
    root: Path | None = None

    @property
    def origin(self) -> str:
        """Where it comes from: `suite`, or the program's name."""
        return SUITE if self.root else self.program

    def command(self, preloaded: Path | None = None) -> list[str]:
        """The beginning of its command line; preloaded: a library to load into it."""
        return [*_loader(self.root, preloaded), self.program, *_data(self.root)]

    def environment(self, preloaded: Path | None = None) -> dict[str, str]:
        """Its whole environment.

        For the host's QEMU the user's own LD_PRELOAD is kept, after ours.
        """
        if self.root:
            kept = {name: value for name, value in os.environ.items() if name not in LOADED}
            return {**kept, "QEMU_MODULE_DIR": _for_loader(self.root / LIBRARIES[1] / "qemu")}
        if preloaded is None:
            return dict(os.environ)
        libraries = filter(None, (_for_loader(preloaded), os.environ.get("LD_PRELOAD")))
        return {**os.environ, "LD_PRELOAD": ":".join(libraries)}


def _loader(root: Path | None, preloaded: Path | None) -> list[str]:
    if root is None:
        return []
    path = ":".join(_for_loader(root / name) for name in LIBRARIES)
    preload = ["--preload", _for_loader(preloaded)] if preloaded else []
    return [str(root / LOADER), "--inhibit-cache", "--library-path", path, *preload]


def _for_loader(path: Path) -> str:
    """A name of the path that the loader accepts, also in a list, while this process lives."""
    if not NOT_FOR_LOADER & set(str(path)):
        return str(path)
    return f"/proc/{os.getpid()}/fd/{_held(path.parent)}/{path.name}"


@functools.cache
def _held(folder: Path) -> int:
    return os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)


def _data(root: Path | None) -> list[str]:
    if root is None:
        return []
    return ["-L", str(root / "usr/share/qemu"), "-L", str(root / "usr/share/seabios")]


@functools.cache
def find(wanted: str = SUITE) -> Emulator:
    """The QEMU of --qemu: `suite`, `host` or a program's path; UserError (3) if it does not run."""
    if wanted == SUITE:
        root = tools.root()
        program = str(root / "usr/bin" / PROGRAM)
        return Emulator(program, _version(Emulator(program, "", root)), root)
    program = PROGRAM if wanted == HOST else wanted
    return Emulator(program, _version(Emulator(program, "")))


def _version(emulator: Emulator) -> str:
    command = [*emulator.command(), "--version"]
    try:
        done = subprocess.run(
            command, env=emulator.environment(), capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError) as error:
        reason = error.strerror if isinstance(error, OSError) else error.stderr.strip()
        raise UserError(
            f"{emulator.program} does not run: {reason}", hint="leave out --qemu"
        ) from None
    return done.stdout.split("\n")[0].removeprefix("QEMU emulator version ")
