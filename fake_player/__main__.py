# SPDX-License-Identifier: GPL-2.0-or-later
"""The fake music player: rsync fills a folder while a playback clock consumes its content."""

import argparse
import sys

from contract import start_up
from errors import run_command
from fake_player.feed import Feeder, add_arguments, make_folder
from fake_player.pace import Pace
from fake_player.player import RATE, Music, play_and_report, rate_of


def main(argv: list[str]) -> int:
    """The command: SIGTERM ends rsync and player; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="python3 -m fake_player",
        description="Fetch music with limited bandwidth and play it meanwhile.",
    )
    add_arguments(parser, "--music-from")
    parser.add_argument("--rate", type=rate_of, default=RATE, metavar="BYTES_PER_S")
    parser.add_argument(
        "--wait",
        action="store_true",
        help="print `ready` when the buffer is full, play when a line is read",
    )
    options = parser.parse_args(argv)
    begin = start_up.wait if options.wait else lambda: None
    make_folder(options.to)
    pace = Pace()
    feeder = Feeder(options.source, options.to, options.bwlimit)
    try:
        return play_and_report(Music(options.to, feeder.complete), options.rate, pace, begin)
    finally:
        feeder.end()


if __name__ == "__main__":
    sys.exit(run_command("fake_player", lambda: main(sys.argv[1:])))
