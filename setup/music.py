# SPDX-License-Identifier: GPL-2.0-or-later
"""The music: files that cannot be compressed, with the same bytes on every machine."""

import argparse
import random
import sys
from pathlib import Path

from contract import values
from errors import run_command
from setup import cache

TRACK = 4 << 20
SEED = 20091102
FORMAT = 1


def build(total_bytes: int = 64 << 20) -> Path:
    """A folder of tracks of 4 MiB (the last one may be shorter), from the cache if it is there."""

    def write(folder: Path) -> None:
        folder.mkdir()
        rng = random.Random(SEED)
        for number, start in enumerate(range(0, total_bytes, TRACK), 1):
            track = rng.randbytes(min(TRACK, total_bytes - start))
            (folder / f"track-{number:02d}.ogg").write_bytes(track)

    return cache.built("music", f"{FORMAT}-{total_bytes}", write)


def main() -> int:
    """python3 -m setup.music [SIZE]: build the music and print its path; the exit status."""
    parser = argparse.ArgumentParser(prog="setup.music", description=__doc__)
    parser.add_argument("size", nargs="?", type=values.size, default=64 << 20)
    print(build(parser.parse_args().size))
    return 0


if __name__ == "__main__":
    sys.exit(run_command("setup.music", main))
