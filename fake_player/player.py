# SPDX-License-Identifier: GPL-2.0-or-later
"""A playback clock for a folder of music that may still be arriving.

A chunk is 0.1 s of audio. Chunk K is due at T0 + K * 0.1 s; T0 is the moment at which the first
second of audio has arrived (players buffer). At the deadline the chunk's bytes are read from the
files; `chunk K late S` gives the seconds from the deadline until all of them were read. No chunk is
left out: after a stall the late chunks are read at once, with a line each. A device has its own
buffer: lateness up to TOLERANCE_S is not audible. Consecutive chunks that are later than that are
one skip; its length is the worst lateness among them, during which there was no sound. After a
stall that is the lateness of the first chunk.
"""

import argparse
import contextlib
import gc
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

from errors import Exit, UserError, run_command
from fake_player.pace import BEAT_S, Pace, late_by, say

TOLERANCE_S = 0.2
PREBUFFER_S = 1.0
RECHECK_S = 0.02  # interval of looking for audio that is due but has not arrived
RATE = 40_000  # bytes of audio per second: 320 kbit/s


class Music:
    """The bytes of a folder's files in the order of their names, repeated from the first one.

    complete() returns whether all the music has arrived; until then, reading stops at the end of
    what has arrived. If a later file exists, the ones before it are complete.
    """

    def __init__(self, folder: Path, complete: Callable[[], bool]) -> None:
        self._folder = folder
        self._complete = complete
        self._names: list[str] = []
        self._next = 0
        self._fd = -1

    def arrived(self) -> int:
        """The number of bytes that have arrived."""
        self._look()
        total = 0
        for name in self._names:
            with contextlib.suppress(FileNotFoundError):
                total += (self._folder / name).stat().st_size
        return total

    def buffered(self, size: float) -> bool:
        """Whether `size` bytes have arrived, or all of the music."""
        whole = self._complete()
        return (arrived := self.arrived()) >= size or (whole and arrived > 0)

    def read(self, size: int) -> int:
        """Play up to `size` bytes.

        Returns the number of bytes that were played, 0 if none has arrived.
        """
        while True:
            whole = (
                self._complete()
            )  # before the read, so that bytes arriving meanwhile are not lost
            if self._fd >= 0 and (got := len(os.read(self._fd, size))):
                return got
            if self._next == len(self._names):
                self._look()
            if self._next < len(self._names):
                self._open(self._names[self._next])
                self._next += 1
            elif whole and self._next:
                self._next = 0
                if not self.arrived():
                    return 0
            else:
                return 0

    def _open(self, name: str) -> None:
        if self._fd >= 0:
            # The previous file is complete now, but may have grown since it was read.
            at = os.lseek(self._fd, 0, os.SEEK_CUR)
            if at < os.fstat(self._fd).st_size:
                self._next -= 1
                return
            os.close(self._fd)
        self._fd = os.open(self._folder / name, os.O_RDONLY | os.O_CLOEXEC)

    def _look(self) -> None:
        names = []
        for place, folders, files in os.walk(self._folder):
            folders[:] = [name for name in folders if not name.startswith(".")]
            inside = Path(place).relative_to(self._folder)
            names += [str(inside / name) for name in files if not name.startswith(".")]
        self._names = sorted(names)


class Skips:
    """Counts skips and adds up their lengths in seconds."""

    def __init__(self) -> None:
        self.count = 0
        self.length = 0.0
        self._worst = 0.0

    def chunk(self, late: float) -> None:
        """The next chunk was played this many seconds late."""
        if late > TOLERANCE_S:
            self.count += self._worst == 0.0
            self._worst = max(self._worst, late)
        else:
            self.end()

    def end(self) -> None:
        """No chunk follows for now: end a skip that is going on."""
        self.length += self._worst
        self._worst = 0.0


def play(music: Music, rate: int, pace: Pace, begin: Callable[[], None]) -> Skips:
    """Play until a signal ends it; begin() returns when a full buffer may start to play."""
    skips = Skips()
    while not music.buffered(rate * PREBUFFER_S):
        if pace.wait(RECHECK_S):
            return skips
    begin()
    start = time.monotonic()
    number = 0
    while not pace.wait_until(deadline := start + number * BEAT_S):
        want = (number + 1) * rate // 10 - number * rate // 10
        while want := want - music.read(want):
            if pace.wait(RECHECK_S):
                skips.chunk(late_by(deadline))
                skips.end()
                return skips
        late = late_by(deadline)
        say(f"chunk {number} late {late:.3f}")
        skips.chunk(late)
        number += 1
    skips.end()
    return skips


def play_and_report(
    music: Music, rate: int, pace: Pace, begin: Callable[[], None] = lambda: None
) -> int:
    """play(), then print the number of skips and their total seconds; returns the exit status."""
    gc.disable()
    skips = play(music, rate, pace, begin)
    say(f"skips {skips.count} length {skips.length:.3f}")
    return 0


def rate_of(text: str) -> int:
    """For argparse: bytes per second, at least one per chunk."""
    if (rate := int(text)) < 10:
        raise argparse.ArgumentTypeError("must be at least 10")
    return rate


def _ended(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return True
    return stat.rpartition(")")[2].split()[0] in "ZX"


def main(argv: list[str]) -> int:
    """The command; returns its exit status."""
    parser = argparse.ArgumentParser(
        prog="python3 -m fake_player.player",
        description="Play a folder by the clock; prints a line for each 0.1 s of audio.",
    )
    parser.add_argument("--music", required=True, type=Path, metavar="DIR")
    parser.add_argument("--rate", type=rate_of, default=RATE, metavar="BYTES_PER_S")
    parser.add_argument(
        "--feeder",
        type=int,
        metavar="PID",
        help="the process that fills DIR: when it ends, the music is complete (default: none)",
    )
    options = parser.parse_args(argv)
    if not options.music.is_dir():
        raise UserError(f"{options.music} is not a folder", status=Exit.USAGE)
    feeder = options.feeder
    music = Music(options.music, lambda: feeder is None or _ended(feeder))
    return play_and_report(music, options.rate, Pace())


if __name__ == "__main__":
    sys.exit(run_command("player", lambda: main(sys.argv[1:])))
