# SPDX-License-Identifier: GPL-2.0-or-later
"""Stalls: gaps of at least a threshold, the open gap at the end included; all times in seconds."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from analysis.reading.latency_log import Floats
from analysis.reading.load import Run
from analysis.reading.streams import STALL, Stream
from contract.run_files import ECHO, HEARTBEAT, PLAYER

THRESHOLDS = (0.1, 1.0, 10.0)
SKIP_TOLERANCE = 0.2  # s by which a chunk of audio may be late before somebody hears it
PACED = (HEARTBEAT, PLAYER, ECHO)  # kinds of streams that print on a clock,
PACE = 0.1  # every so many seconds
BEAT_TOLERANCE = 0.1  # s by which a heartbeat may be late before its deadline counts as missed


def kind(stream: str) -> str:
    """'heartbeat' of heartbeat-inside, 'gitk' of gitk-4."""
    return stream.partition("-")[0]


@dataclass(frozen=True)
class Stall:
    """One silence: from `begin` (elapsed) for `length`; `open` if no line ended it."""

    begin: float
    length: float
    stream: str
    open: bool = False

    @property
    def end(self) -> float:
        """Elapsed at which it ended, or up to which it is known."""
        return self.begin + self.length


@dataclass(frozen=True)
class Total:
    """How many stalls of at least `threshold` there were, and the seconds spent in them."""

    threshold: float
    count: int
    seconds: float


@dataclass(frozen=True)
class Lateness:
    """What the `late S` lines say of deadlines; `unread` lines say nothing."""

    deadlines: int
    missed: int
    spans: tuple[float, ...]  # of each maximal run of missed deadlines: how late its first one was
    worst: float
    unread: int


def stalls(stream: Stream, threshold: float = STALL) -> list[Stall]:
    """The stream's stalls in order of time; the open gap counts, as one that no line ended."""
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


def totals(stream: Stream) -> list[Total]:
    """Count and seconds of the stalls at each of THRESHOLDS."""
    by_threshold = {threshold: _lengths(stream, threshold) for threshold in THRESHOLDS}
    return [Total(t, len(lengths), _sum(lengths)) for t, lengths in by_threshold.items()]


def worst(stream: Stream) -> float:
    """The longest silence, the open gap included."""
    return max([float(stream.gap.max()) if len(stream.gap) else 0.0, stream.open_gap])


def stalled_seconds(run: Run) -> float:
    """Seconds in stalls, added up over the run's subjects: the primary metric of a desktop."""
    lengths = [_lengths(stream, STALL) for stream in run.subjects]
    return _sum(np.concatenate(lengths)) if lengths else 0.0


def _lengths(stream: Stream, threshold: float) -> Floats:
    """Of the stream's stalls, in order of time."""
    every = np.append(stream.gap, stream.open_gap)
    long: Floats = every[every >= threshold]
    return long


def _sum(lengths: Floats) -> float:
    """One after the other: a sum of parts is another one in its last digit."""
    return float(np.cumsum(lengths)[-1]) if len(lengths) else 0.0


def freezes(streams: Iterable[Stream]) -> list[tuple[float, float]]:
    """(begin, end) of the times in which at least one of the streams was in a stall, merged."""
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
    """Deadlines missed by more than tolerance in `chunk K late S` or `beat K late S` lines.

    None if no line says so. A maximal run of late chunks is one span (an audio skip), as long as
    its first chunk was late: the others are late only because the first one was.
    """
    if stream.late is None:
        return None
    known = stream.late[np.isfinite(stream.late)]
    missed = known > tolerance
    begins = missed & ~np.concatenate(([False], missed[:-1]))
    spans = tuple(known[begins].tolist())
    unread = len(stream.late) - len(known)
    return Lateness(len(known), int(missed.sum()), spans, float(known.max()), unread)
