# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs commands and copies files on another host, by ssh with the user's keys, never a password.

DESKTOP_FREEZE_SSH names another program and its options: a wrapper, or `ssh -F FILE`.
"""

import os
import shlex
from collections.abc import Sequence
from pathlib import Path

from run.jobs import programs
from run.jobs.programs import NoAnswer

WRAPPER = "DESKTOP_FREEZE_SSH"
OPTIONS = ("BatchMode=yes", "ConnectTimeout=10", "ServerAliveInterval=15", "ServerAliveCountMax=3")
PROGRAMS = ("rsync",)  # beside ssh, which may be a wrapper
HINT = "--on ssh needs it: install it here"
UNREACHED = 255  # ssh's own status
CALL_S, COPY_S = 120.0, 3600.0  # time limits, after which a host counts as not answering
# rsync's exit statuses for a connection that failed or was lost.
RSYNC_LOST = (10, 12, 30, 35, UNREACHED)


class Failed(Exception):
    """A command on a host failed: its last line."""


def program() -> list[str]:
    """ssh or its replacement, with options."""
    words = shlex.split(os.environ.get(WRAPPER, "")) or ["ssh"]
    return [*words, *(word for option in OPTIONS for word in ("-o", option))]


class Remote:
    """A host. name: its name for ssh."""

    def __init__(self, name: str) -> None:
        self.name = name

    def run(self, script: str, data: bytes = b"") -> str:
        """Run a sh script there with data on stdin; returns its output. NoAnswer or Failed."""
        command = [*program(), self.name, f"sh -c {shlex.quote(script)}"]
        done = programs.ask(command, CALL_S, HINT, data)
        if done.status:
            why = done.error[-1] if done.error else f"status {done.status}"
            raise (NoAnswer if done.status == UNREACHED else Failed)(why)
        return done.output

    def send(self, path: Path, there: str, left_out: Sequence[str] = ()) -> None:
        """Copy a file, or a folder's content, to that place, unless it is there already."""
        source = f"{path}/" if path.is_dir() else str(path)
        excluded = [f"--exclude={pattern}" for pattern in left_out]
        self._rsync([*excluded, "--hard-links", source, f"{self.name}:{there}"])

    def fetch(self, there: str, folder: Path) -> None:
        """Copy the content of a folder there into a folder here."""
        self._rsync([f"{self.name}:{there}/", f"{folder}/"])

    def _rsync(self, words: list[str]) -> None:
        command = ["rsync", "-a", "-z", "-s", "--partial", "-e", shlex.join(program()), *words]
        done = programs.ask(command, COPY_S, HINT)
        if done.status:
            why = done.error[0] if done.error else f"rsync ended with status {done.status}"
            raise (NoAnswer if done.status in RSYNC_LOST else Failed)(why)
