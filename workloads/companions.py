# SPDX-License-Identifier: GPL-2.0-or-later
"""The programs beside every workload: heartbeat, player, and the echo load if requested."""

import os
import sys
from pathlib import Path

from contract.options import Options
from contract.run_files import ECHO, HEARTBEAT, PLAYER
from monitors.streams import Stream

SUITE = Path(__file__).resolve().parent.parent
MUSIC_BYTES_PER_S = 40_000  # 320 kbit/s
MUSIC_BWLIMIT_KIB = 100
MUSIC = "music"  # a folder of the file system under test
HEARTBEAT_WORKING_SET = "8M"
# The first words of a command that ends with the process that starts it.
DIES_WITH_US = ("setpriv", "--pdeathsig", "KILL")


def names(options: Options) -> list[str]:
    """The names of their streams, in the order in which they start."""
    return [HEARTBEAT, PLAYER, *([ECHO] if options.atomic_order else [])]


def programs(options: Options, scratch: Path) -> list[Stream]:
    """Their programs, in the same order; each waits until the workload begins."""
    music = ["--music-from", str(options.music), "--to", str(scratch / MUSIC)]
    rates = ["--bwlimit", str(MUSIC_BWLIMIT_KIB), "--rate", str(MUSIC_BYTES_PER_S)]
    started = [heartbeat(HEARTBEAT), program(PLAYER, ["fake_player", *music, *rates])]
    if options.atomic_order:
        order, rate = str(options.atomic_order), str(options.atomic_rate)
        started.append(program(ECHO, ["echo_load", "--order", order, "--rate", rate]))
    return started


def heartbeat(
    name: str, before: tuple[str, ...] = (), working_set: str = HEARTBEAT_WORKING_SET
) -> Stream:
    """A heartbeat; before: the first words of a command that executes its remaining arguments."""
    argv = ["fake_player.heartbeat", "--working-set", working_set]
    return program(name, argv, before)


def environment() -> dict[str, str]:
    """The variables that every program of a run has."""
    path, home = os.environ["PATH"], os.environ.get("HOME", "/")
    return {"PATH": path, "HOME": home, "LC_ALL": "C.UTF-8"}


def program(name: str, argv: list[str], before: tuple[str, ...] = ()) -> Stream:
    """A stream of one of the suite's own programs, which waits until the workload begins."""
    env = {
        **environment(),
        "PYTHONPATH": str(SUITE),
        "PYTHONSAFEPATH": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    command = [*before, sys.executable, "-S", "-m", *argv, "--wait"]
    return Stream(name, command, env, waits=True)
