# SPDX-License-Identifier: GPL-2.0-or-later
"""Commands and files on another host, by ssh with the user's own keys: no password is asked for.

DESKTOP_FREEZE_SSH names another program, with its options: a wrapper, or `ssh -F FILE`.
"""

import os
import shlex
import subprocess
from collections.abc import Sequence
from pathlib import Path

from errors import UserError

WRAPPER = "DESKTOP_FREEZE_SSH"
OPTIONS = ("BatchMode=yes", "ConnectTimeout=10", "ServerAliveInterval=15", "ServerAliveCountMax=3")
PROGRAMS = ("rsync",)  # beside ssh, which may be a wrapper
UNREACHED = 255  # ssh's own status
CALL_S, COPY_S = 120.0, 3600.0  # after which a host counts as one that does not answer
# rsync's statuses of a connection that failed, or was lost.
RSYNC_LOST = (10, 12, 30, 35, UNREACHED)


class Unreached(Exception):
    """The host did not answer, or the connection broke: in one line. It may answer later."""


class Failed(Exception):
    """A command ran there, and failed: its last line."""


def program() -> list[str]:
    """ssh, as it is started."""
    words = shlex.split(os.environ.get(WRAPPER, "")) or ["ssh"]
    return [*words, *(word for option in OPTIONS for word in ("-o", option))]


class Remote:
    """One host, as ssh knows it."""

    def __init__(self, name: str) -> None:
        self.name = name

    def run(self, script: str, data: bytes = b"") -> str:
        """Run a script of sh there, data on its stdin; what it printed. Unreached, or Failed."""
        done = _run([*program(), self.name, f"sh -c {shlex.quote(script)}"], data, CALL_S)
        said = done.stderr.decode("utf-8", "replace").strip().splitlines()
        why = said[-1] if said else f"status {done.returncode}"
        if done.returncode:
            raise (Unreached if done.returncode == UNREACHED else Failed)(why)
        return done.stdout.decode("utf-8", "replace")

    def send(self, path: Path, there: str, left_out: Sequence[str] = ()) -> None:
        """Copy a file, or what is in a folder, to that place, as far as it is not there yet."""
        source = f"{path}/" if path.is_dir() else str(path)
        excluded = [f"--exclude={one}" for one in left_out]
        self._rsync([*excluded, "--hard-links", source, f"{self.name}:{there}"])

    def fetch(self, there: str, folder: Path) -> None:
        """Copy what is in a folder there into one that is here."""
        self._rsync([f"{self.name}:{there}/", f"{folder}/"])

    def _rsync(self, words: list[str]) -> None:
        command = ["rsync", "-a", "-z", "-s", "--partial", "-e", shlex.join(program()), *words]
        done = _run(command, b"", COPY_S)
        said = done.stderr.decode("utf-8", "replace").strip().splitlines()
        why = said[0] if said else f"rsync ended with status {done.returncode}"
        if done.returncode:
            raise (Unreached if done.returncode in RSYNC_LOST else Failed)(why)


def _run(command: list[str], data: bytes, within_s: float) -> subprocess.CompletedProcess[bytes]:
    """A program of this machine's; Unreached if it takes too long, UserError if it is not here."""
    try:
        return subprocess.run(
            command, input=data, capture_output=True, timeout=within_s, start_new_session=True
        )
    except subprocess.TimeoutExpired:
        raise Unreached(f"{command[0]}: no end within {within_s:.0f} s") from None
    except OSError as error:
        raise UserError(
            f"{command[0]}: {error.strerror}", hint="--on ssh needs it: install it here"
        ) from None
