# SPDX-License-Identifier: GPL-2.0-or-later
"""What runs beside each workload: the heartbeat, the player, and the echo load if asked for."""

import os
import sys
from pathlib import Path

from contract.options import Options
from contract.run_files import ECHO, HEARTBEAT, PLAYER
from monitors.streams import Stream

SUITE = Path(__file__).resolve().parent.parent
MUSIC_BYTES_PER_S = 40_000  # 320 kbit/s
MUSIC_BWLIMIT_KIB = 100
MUSIC = "music"  # the folder of the file system under test
HEARTBEAT_WORKING_SET = "8M"


def names(options: Options) -> list[str]:
    """Their streams, in the order in which they start."""
    return [HEARTBEAT, PLAYER, *([ECHO] if options.atomic_order else [])]


def programs(options: Options, scratch: Path) -> list[Stream]:
    """The same as programs, which wait for the begin."""
    music = ["--music-from", str(options.music), "--to", str(scratch / MUSIC)]
    rates = ["--bwlimit", str(MUSIC_BWLIMIT_KIB), "--rate", str(MUSIC_BYTES_PER_S)]
    found = [heartbeat(HEARTBEAT), program(PLAYER, ["fake_player", *music, *rates])]
    if options.atomic_order:
        order, rate = str(options.atomic_order), str(options.atomic_rate)
        found.append(program(ECHO, ["echo_load", "--order", order, "--rate", rate]))
    return found


def heartbeat(
    name: str, before: tuple[str, ...] = (), working_set: str = HEARTBEAT_WORKING_SET
) -> Stream:
    """A heartbeat; before: words of a command that executes the rest of its arguments."""
    argv = ["fake_player.heartbeat", "--working-set", working_set]
    return program(name, argv, before)


def program(name: str, argv: list[str], before: tuple[str, ...] = ()) -> Stream:
    """A stream of one of the suite's own programs, that waits for the begin."""
    env = {
        "PATH": os.environ["PATH"],
        "HOME": os.environ.get("HOME", "/"),
        "LC_ALL": "C.UTF-8",
        "PYTHONPATH": str(SUITE),
        "PYTHONSAFEPATH": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    command = [*before, sys.executable, "-S", "-m", *argv, "--wait"]
    return Stream(name, command, env, waits=True)
