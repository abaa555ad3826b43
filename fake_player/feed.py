# SPDX-License-Identifier: GPL-2.0-or-later
"""Fills the music folder with rsync, at a limited bandwidth, from another machine.

The source is rsync://HOST/module[/path], or a local folder. A folder is served by an rsync daemon
that rsync itself starts on a socket (RSYNC_CONNECT_PROG): the protocol is the same and no port
stays open, but the socket needs the loopback interface. As a command this module becomes rsync and
does not retry; `python3 -m fake_player` does.
"""

import argparse
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from errors import Exit, UserError, run_command
from setup import rsync_daemon

AGAIN_S = (1.0, 2.0, 5.0)  # before the first, the second, and all further retries


def command(source: str, folder: Path, limit_kib: int) -> tuple[list[str], dict[str, str]]:
    """The arguments and the environment of rsync for one attempt.

    limit_kib: KiB per second. With --size-only a retry leaves complete files alone.
    """
    rsync = shutil.which("rsync")
    if rsync is None:
        raise UserError("rsync is missing", hint="apt-get install rsync")
    environment = dict(os.environ)
    if not source.startswith("rsync://"):
        config = shlex.quote(_daemon_file(Path(source)))
        serve = f"{rsync} --daemon --config={config}; rm -f {config}"
        environment["RSYNC_CONNECT_PROG"] = serve
        source = "rsync://localhost/music"
    arguments = ["--inplace", "--whole-file", "--size-only", "--recursive"]
    arguments += [f"--bwlimit={limit_kib}", "--", source.rstrip("/") + "/", f"{folder}/"]
    return [rsync, *arguments], environment


def _daemon_file(source: Path) -> str:
    # A named file: rsync 3.5 does not follow links to its configuration, such as /proc/self/fd/N.
    if not source.is_dir():
        raise UserError(f"{source} is neither rsync://HOST/module nor a folder", status=Exit.USAGE)
    config = rsync_daemon.config(str(source.resolve()), None)
    with tempfile.NamedTemporaryFile("w", prefix="rsyncd-", suffix=".conf", delete=False) as file:
        file.write(config)
    return file.name


class Feeder:
    """Runs rsync as a child; restarts it when it fails, with one line on stderr each time."""

    def __init__(self, source: str, folder: Path, limit_kib: int) -> None:
        self._what = (source, folder, limit_kib)
        self._failures = 0
        self._again = 0.0
        self._child: subprocess.Popen[bytes] | None = self._start()
        self._done = False

    def complete(self) -> bool:
        """Whether everything has arrived. Call it repeatedly: it also restarts rsync."""
        if self._done:
            return True
        if self._child is None:
            if time.monotonic() >= self._again:
                self._child = self._start()
            return False
        status = self._child.poll()
        if status is None:
            return False
        if status == 0:
            self._done = True
            return True
        wait = AGAIN_S[min(self._failures, len(AGAIN_S) - 1)]
        self._failures += 1
        self._again = time.monotonic() + wait
        self._child = None
        how = f"signal {-status}" if status < 0 else f"status {status}"
        os.write(2, f"rsync ended with {how}, again in {wait:.0f} s\n".encode())
        return False

    def end(self) -> None:
        """End rsync."""
        if self._child is not None:
            self._child.terminate()
            self._child.wait()

    def _start(self) -> "subprocess.Popen[bytes]":
        arguments, environment = command(*self._what)
        return subprocess.Popen(
            arguments,
            env=environment,
            stdin=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )


def add_arguments(parser: argparse.ArgumentParser, source: str) -> None:
    """Add the options for source, folder and bandwidth; source: the name of the first one."""
    help_ = "rsync://HOST/module[/path] or a folder"
    parser.add_argument(source, dest="source", required=True, metavar="SRC", help=help_)
    parser.add_argument("--to", required=True, type=Path, metavar="DIR")
    parser.add_argument(
        "--bwlimit", type=int, default=100, metavar="KIB", help="KiB per second; 0: no limit"
    )


def make_folder(folder: Path) -> None:
    """Make the folder to fill, unless it exists."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"{folder}: {error.strerror}", status=Exit.USAGE) from None


def main(argv: list[str]) -> int:
    """The command: becomes rsync, whose exit status it has."""
    parser = argparse.ArgumentParser(
        prog="python3 -m fake_player.feed", description="Fetch music with limited bandwidth."
    )
    add_arguments(parser, "--from")
    options = parser.parse_args(argv)
    make_folder(options.to)
    arguments, environment = command(options.source, options.to, options.bwlimit)
    os.execve(arguments[0], arguments, environment)


if __name__ == "__main__":
    sys.exit(run_command("feed", lambda: main(sys.argv[1:])))
