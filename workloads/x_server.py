# SPDX-License-Identifier: GPL-2.0-or-later
"""An X server without a screen (Xvfb), for real windows: gitk's, and those that get keys."""

import contextlib
import os
import shutil
import struct
import subprocess
from collections.abc import Iterator
from pathlib import Path

from errors import UserError
from workloads import companions
from workloads.workload import WorkloadEnvironment

SCRIPT = Path(__file__).resolve().parent / "gitk.tcl"
# One that no other X server has.
DISPLAY = ":2009"
WIDTH, HEIGHT, WAITING_HEIGHT = 1280, 800, 400  # pixels
PATIENCE_S = 60.0  # for its end: it may be swapped out


def key_file(environment: WorkloadEnvironment) -> Path:
    """The file with the X server's key: other users of a machine (--device) cannot connect."""
    return environment.figures.with_name("xauthority")


def write_key(path: Path) -> None:
    """A new key for DISPLAY, in the format of Xau(3): for every host (FamilyWild)."""
    fields = (b"", DISPLAY.removeprefix(":").encode(), b"MIT-MAGIC-COOKIE-1", os.urandom(16))
    data = b"".join(struct.pack(">H", len(field)) + field for field in fields)
    path.unlink(missing_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with open(descriptor, "wb") as file:
        file.write(struct.pack(">H", 0xFFFF) + data)


def environment_of(environment: WorkloadEnvironment) -> dict[str, str]:
    """The variables of a program in a window of the X server."""
    return {
        **companions.environment(),
        "DISPLAY": DISPLAY,
        "XAUTHORITY": str(key_file(environment)),
        # Not the user's own settings; gitk would also make a folder for them.
        "HOME": str(environment.figures.parent),
        "XDG_CONFIG_HOME": str(environment.figures.parent),
    }


def gitk(clone: Path, commits: int, every: int = 0) -> list[str]:
    """The command of a gitk that reads so many commits of this clone (gitk.tcl)."""
    command = ["sh", "-c", 'cd "$1" && shift && exec wish "$@"', "sh", str(clone), str(SCRIPT)]
    return [*command, shutil.which("gitk") or "gitk", str(commits), str(every)]


@contextlib.contextmanager
def running(key: Path, *, waiting: bool = False) -> Iterator[None]:
    """An X server at DISPLAY that accepts clients with this file's key.

    waiting: with room for the windows that wait for keys, below those of the load. UserError if it
    cannot start.
    """
    with contextlib.ExitStack() as stack:
        stack.callback(key.unlink, missing_ok=True)
        write_key(key)
        errors = os.memfd_create("x-server")
        stack.callback(os.close, errors)
        answer, ready = os.pipe()
        display = stack.enter_context(open(answer))
        server = _start(key, waiting, errors, ready)
        stack.callback(_end, server)
        if not display.readline():
            words = os.pread(errors, 65_536, 0).decode(errors="replace").split("\n")
            why = next((line for line in reversed(words) if line.strip()), "no word from it")
            raise UserError(f"the X server did not start: {why.strip()}")
        yield


def _start(key: Path, waiting: bool, errors: int, ready: int) -> subprocess.Popen[bytes]:
    screen = f"{WIDTH}x{HEIGHT + (WAITING_HEIGHT if waiting else 0)}x24"
    # -noreset: without it the server starts anew when its last window is closed.
    argv = [*companions.DIES_WITH_US, "Xvfb", DISPLAY, "-displayfd", str(ready)]
    argv += ["-screen", "0", screen, "-nolisten", "tcp", "-nolisten", "local", "-noreset"]
    argv += ["-auth", str(key)]
    try:
        return subprocess.Popen(argv, stdin=subprocess.DEVNULL, stderr=errors, pass_fds=[ready])
    except OSError as error:
        raise UserError(f"the X server did not start: {error.strerror}") from None
    finally:
        os.close(ready)


def _end(server: subprocess.Popen[bytes]) -> None:
    server.terminate()
    try:
        server.wait(PATIENCE_S)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()
