# SPDX-License-Identifier: GPL-2.0-or-later
"""The desktop with the real gitk's: Tcl/Tk in windows of an X server without a screen (Xvfb).

It takes six to fourteen times the memory a commit that fake_gitk takes, which the default workload
uses (docs/developer/fake-gitk.md). The lines have the same form.
"""

import contextlib
import os
import shutil
import struct
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from contract.options import Options
from contract.values import up_to
from contract.workload import Description
from errors import Exit, UserError
from monitors.streams import Stream
from workloads import companions, desktop
from workloads.workload import Parameter, WorkloadEnvironment, defaults

NAME = "gitk"
SCRIPT = Path(__file__).resolve().parent / "gitk.tcl"
# One that no other X server has.
DISPLAY = ":2009"
SCREEN = "1280x800x24"
# The X server takes 23 MiB, and each window 9 MiB before it reads a commit.
MORE_MEMORY = 64 << 20


def check(options: Options) -> None:
    """UserError (2) if the history is shorter than what is read."""
    if options.commits and read(options) > options.commits:
        raise UserError(
            f"--load commits={read(options)}: the history has {options.commits} (--commits)",
            status=Exit.USAGE,
        )


def read(options: Options) -> int:
    """How many commits each gitk reads."""
    return WORKLOAD.values(options)["commits"]


@contextlib.contextmanager
def prepared(options: Options, environment: WorkloadEnvironment) -> Iterator[None]:
    """Clone the history, and start the X server, which ends with this process or with the run."""
    with desktop.prepared(options, environment), x_server(key_file(environment)):
        yield


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


@contextlib.contextmanager
def x_server(key: Path) -> Iterator[None]:
    """An X server at DISPLAY that answers who has this file's key; UserError if it cannot start."""
    write_key(key)
    answer, ready = os.pipe()
    errors = os.memfd_create("x-server")
    # -noreset: without it the server starts anew when its last window is closed.
    argv = [*companions.DIES_WITH_US, "Xvfb", DISPLAY, "-displayfd", str(ready)]
    argv += ["-screen", "0", SCREEN, "-nolisten", "tcp", "-nolisten", "local", "-noreset"]
    argv += ["-auth", str(key)]
    server = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stderr=errors, pass_fds=[ready])
    os.close(ready)
    try:
        with open(answer) as display:
            if not display.readline():
                words = os.pread(errors, 65_536, 0).decode(errors="replace").split("\n")
                why = next((line for line in reversed(words) if line.strip()), "no word from it")
                raise UserError(f"the X server did not start: {why.strip()}")
        yield
    finally:
        server.terminate()
        server.wait()
        os.close(errors)
        key.unlink()


def programs(options: Options, environment: WorkloadEnvironment) -> list[Stream]:
    """The gitk's."""
    gitk = shutil.which("gitk") or "gitk"
    command = ["sh", "-c", 'cd "$1" && shift && exec wish "$@"', "sh"]
    command += [str(environment.scratch / desktop.CLONE), str(SCRIPT), gitk]
    command += [str(options.every), str(read(options))]
    env = {
        **companions.environment(),
        "DISPLAY": DISPLAY,
        "XAUTHORITY": str(key_file(environment)),
        # Not the user's own settings; gitk would also make a folder for them.
        "XDG_CONFIG_HOME": str(environment.figures.parent),
    }
    return [Stream(name, command, env, waits=True) for name in desktop.streams(options)]


def describe(options: Options) -> Description:
    """The desktop's description, of the real gitk's."""
    return replace(
        desktop.describe(options), name=NAME, summary="music and real gitk's that read a history"
    )


WORKLOAD = replace(
    desktop.WORKLOAD,
    name=NAME,
    describe=describe,
    programs=programs,
    real_gitks=True,
    reads=read,
    more_memory=MORE_MEMORY,
    check=check,
    parameters=(
        Parameter(
            "commits",
            "number of the newest commits that each gitk reads",
            up_to(1_000_000),
            defaults("4000", "16000", "16000"),
        ),
    ),
    packages={"gitk": "gitk", "xvfb": "Xvfb"},
    prepared=prepared,
)
