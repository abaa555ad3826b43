# SPDX-License-Identifier: GPL-2.0-or-later
"""The desktop workload of reference/001: music, four gitk's, and an idle program beside them."""

import os
import subprocess
import sys
from pathlib import Path

from contract.options import Options
from contract.run_files import ECHO, GITK, HEARTBEAT, PLAYER, stream_names
from errors import UserError
from monitors.streams import Stream

SUITE = Path(__file__).resolve().parent.parent
MUSIC_BYTES_PER_S = 40_000  # 320 kbit/s
MUSIC_BWLIMIT_KIB = 100
HEARTBEAT_WORKING_SET = "8M"


def fill(scratch: Path, repository: str) -> None:
    """Clone the history into the file system under test and make the music's empty folder."""
    # A repository may borrow objects from another, which lies on a disk that is not under test:
    # --dissociate copies these, too, and does nothing if there are none.
    command = ["git", "clone", "--quiet", "--no-checkout", "--local", "--no-hardlinks"]
    command += ["--dissociate", "--", str(Path(repository).resolve()), str(scratch / "linux-2.6")]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        lines = done.stderr.strip().splitlines() or [f"git ended with status {done.returncode}"]
        raise UserError(f"cannot clone {repository}: {lines[-1]}")
    (scratch / "music").mkdir()


def finite_streams(options: Options) -> set[str]:
    """The streams whose end is the end of the test: the gitk's."""
    names = stream_names(options.gitk)
    return {name for name in names if name.startswith(GITK)}


def streams(options: Options, scratch: Path, music: str) -> list[Stream]:
    """What is started, in this order, each with its own line log."""
    result = []
    for name in stream_names(options.gitk, bool(options.atomic_order)):
        if name == HEARTBEAT:
            argv = ["fake_player.heartbeat", "--working-set", HEARTBEAT_WORKING_SET]
        elif name == PLAYER:
            argv = ["fake_player", "--music-from", music, "--to", str(scratch / "music")]
            argv += ["--bwlimit", str(MUSIC_BWLIMIT_KIB), "--rate", str(MUSIC_BYTES_PER_S)]
        elif name == ECHO:
            argv = [
                "echo_load",
                "--order",
                str(options.atomic_order),
                "--rate",
                str(options.atomic_rate),
            ]
        else:
            argv = [
                "fake_gitk",
                "--repo",
                str(scratch / "linux-2.6"),
                "--every",
                str(options.every),
            ]
            argv += ["--passes", str(options.passes), "--touch", str(options.touch)]
            argv += ["--step", str(options.step), "--seed", name.removeprefix(GITK)]
        env = {
            "PATH": os.environ["PATH"],
            "HOME": os.environ.get("HOME", "/"),
            "LC_ALL": "C.UTF-8",
            "PYTHONPATH": str(SUITE),
            "PYTHONSAFEPATH": "1",
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        program = [sys.executable, "-S", "-m", *argv, "--wait"]
        result.append(Stream(name, program, env, waits=True))
    return result
