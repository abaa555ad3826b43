# SPDX-License-Identifier: GPL-2.0-or-later
"""The music: files that cannot be compressed, with the same bytes on every machine."""

import random
from pathlib import Path

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
