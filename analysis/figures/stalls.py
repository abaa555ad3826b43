# SPDX-License-Identifier: GPL-2.0-or-later
"""Finds stalls: gaps of at least a threshold, including the open gap at the end; all in seconds."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from analysis.reading.latency_log import Floats
from analysis.reading.load import Run
from analysis.reading.streams import STALL, Stream
from contract.run_files import ECHO, HEARTBEAT, PLAYER

THRESHOLDS = (0.1, 1.0, 10.0)
SKIP_TOLERANCE = 0.2  # s by which a chunk of audio may be late before a skip is heard
PACED = (HEARTBEAT, PLAYER, ECHO)  # kinds of streams that print on a clock
PACE = 0.1  # s between their lines
BEAT_TOLERANCE = 0.1  # s by which a heartbeat may be late before its deadline counts as missed


def kind(stream: str) -> str:
    """The kind of a stream: 'heartbeat' for heartbeat-inside, 'gitk' for gitk-4."""
    return stream.partition("-")[0]


@dataclass(frozen=True)
class Stall:
    """A stall from `begin` (elapsed s) for `length` s; `open` if no line ended it."""

    begin: float
    length: float
    stream: str
    open: bool = False

    @property
    def end(self) -> float:
        """Elapsed s at which it ended, or up to which it is known to have lasted."""
        return self.begin + self.length


@dataclass(frozen=True)
class Total:
    """The number of stalls of at least `threshold` s, and the seconds spent in them."""

    threshold: float
    count: int
    seconds: float


@dataclass(frozen=True)
class Lateness:
    """Deadlines by the `late S` lines; `worst` in s; `unread`: lines without a lateness."""

    deadlines: int
    missed: int
    spans: tuple[float, ...]  # s by which the first deadline of each maximal missed run was late
    worst: float
    unread: int


def stalls(stream: Stream, threshold: float = STALL) -> list[Stall]:
    """The stream's stalls of at least `threshold` s in order of time, the open gap included."""
    long = stream.gap >= threshold
    lengths = stream.gap[long]
    begins = stream.elapsed[long] - lengths
    stream_stalls = [
        Stall(begin, length, stream.name)
        for begin, length in zip(begins.tolist(), lengths.tolist(), strict=True)
    ]
    if stream.open_gap >= threshold:
        stream_stalls.append(Stall(stream.last, stream.open_gap, stream.name, open=True))
    return stream_stalls


def stalled_after(run: Run, begin: float) -> float:
    """Seconds of the subjects' stalls after `begin` (elapsed s), all subjects added up."""
    of_subjects = (stall for stream in run.subjects for stall in stalls(stream))
    after = (stall.end - max(stall.begin, begin) for stall in of_subjects)
    return math.fsum(max(0.0, seconds) for seconds in after)


def totals(stream: Stream) -> list[Total]:
    """Count and seconds of the stalls for each of THRESHOLDS."""
    by_threshold = {threshold: _lengths(stream, threshold) for threshold in THRESHOLDS}
    return [Total(t, len(lengths), _sum(lengths)) for t, lengths in by_threshold.items()]


def worst(stream: Stream) -> float:
    """The longest gap in seconds, the open gap included."""
    return max([float(stream.gap.max()) if len(stream.gap) else 0.0, stream.open_gap])


def stalled_seconds(run: Run) -> float:
    """Seconds in stalls, summed over the run's subjects: the primary metric of a desktop."""
    lengths = [_lengths(stream, STALL) for stream in run.subjects]
    return _sum(np.concatenate(lengths)) if lengths else 0.0


def _lengths(stream: Stream, threshold: float) -> Floats:
    """The lengths (s) of the stream's stalls, in order of time."""
    every = np.append(stream.gap, stream.open_gap)
    long: Floats = every[every >= threshold]
    return long


def _sum(lengths: Floats) -> float:
    """The sum in order: NumPy's pairwise sum differs in the last digit."""
    return float(np.cumsum(lengths)[-1]) if len(lengths) else 0.0


def freezes(streams: Iterable[Stream]) -> list[tuple[float, float]]:
    """(begin, end), elapsed s, of the times in which at least one stream stalled, merged."""
    begins, lengths = [np.zeros(0)], [np.zeros(0)]
    for stream in streams:
        gap = np.append(stream.gap, stream.open_gap)
        long = gap >= STALL
        lengths.append(gap[long])
        begins.append(np.append(stream.elapsed - stream.gap, stream.last)[long])
    begin, length = np.concatenate(begins), np.concatenate(lengths)
    order = np.argsort(begin, kind="stable")
    begin, end = begin[order], np.maximum.accumulate((begin + length)[order])
    first = np.flatnonzero(np.append(True, begin[1:] > end[:-1])[: len(begin)])
    last = np.append(first[1:], len(begin))[: len(first)] - 1
    return list(zip(begin[first].tolist(), end[last].tolist(), strict=True))


def lateness(stream: Stream, tolerance: float) -> Lateness | None:
    """Deadlines missed by more than `tolerance` s in `chunk K late S` or `beat K late S` lines.

    None if there is no such line. Consecutive late chunks are one span (an audio skip); its length
    is the lateness of the first chunk, because the others are late only for that reason.
    """
    if stream.late is None:
        return None
    known = stream.late[np.isfinite(stream.late)]
    missed = known > tolerance
    begins = missed & ~np.concatenate(([False], missed[:-1]))
    spans = tuple(known[begins].tolist())
    unread = len(stream.late) - len(known)
    return Lateness(len(known), int(missed.sum()), spans, float(known.max()), unread)
