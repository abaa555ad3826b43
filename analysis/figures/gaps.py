# SPDX-License-Identifier: GPL-2.0-or-later
"""Arithmetic of gaps (arrays of seconds): shares and percentiles of time, not of lines."""

import numpy as np

from analysis.reading.latency_log import Floats
from analysis.reading.streams import Stream

WINDOW = 10.0  # s: length of a window in window_quantiles
MOST_WINDOWS = 100_000  # a stamp beyond 11 days is damaged


def percent_in(length: Floats, threshold: float) -> float:
    """Per cent of the time that lies in gaps of at least the threshold; all in seconds."""
    return 100 * float(length[length >= threshold].sum()) / float(length.sum())


def silences(streams: list[Stream]) -> tuple[Floats, Floats]:
    """Begins (elapsed) and lengths of all gaps of the streams, open gaps included; seconds."""
    ends = [np.append(stream.elapsed, stream.until) for stream in streams]
    lengths = [np.append(stream.gap, stream.open_gap) for stream in streams]
    length = np.concatenate(lengths)
    return np.concatenate(ends) - length, length


def expected_wait(length: Floats) -> float:
    """Mean seconds until the next line, from a random moment of a random stream.

    The moment is in a gap of g seconds with probability g / total, and the gap then lasts another
    g / 2 on average: sum(g^2) / 2 / total. The part of an open gap after the run does not count.
    """
    return float((length**2).sum() / 2 / length.sum())


def quantile_by_time(length: Floats, weight: Floats, q: float) -> float:
    """The shortest gap (s) such that gaps up to it hold a share q (0 to 1) of the time (weight)."""
    order = np.argsort(length, kind="stable")
    reached = np.cumsum(weight[order])
    return float(length[order][np.searchsorted(reached, q * reached[-1] * (1 - 1e-12))])


def window_quantiles(begin: Floats, length: Floats, q: float) -> Floats | None:
    """quantile_by_time (s) of each WINDOW of a stream that has a gap; None if too many windows.

    In each window a gap has only the seconds that lie in it. A long gap therefore fills some
    windows with WINDOW seconds each, and does not change the others.
    """
    end = begin + length
    first = np.floor(begin / WINDOW).astype(np.int64)
    last = np.maximum(first, np.ceil(end / WINDOW).astype(np.int64) - 1)
    if last.max() - first.min() > MOST_WINDOWS:
        return None
    copies = last - first + 1
    which = np.repeat(np.arange(len(length)), copies)
    start = np.cumsum(copies) - copies
    window = first[which] + np.arange(len(which)) - start[which]
    left = np.maximum(begin[which], window * WINDOW)
    inside = np.maximum(np.minimum(end[which], (window + 1) * WINDOW) - left, 0)
    order = np.lexsort((inside, window))
    window, inside = window[order], inside[order]
    firsts = np.flatnonzero(np.diff(window, prepend=window[0] - 1))
    reached = np.cumsum(inside)
    before = np.append(0.0, reached[firsts[1:] - 1])
    covered = np.append(before[1:], reached[-1]) - before
    # Less a nanosecond: the sums are rounded, and gaps are known to a millisecond only.
    places = np.maximum(np.searchsorted(reached, before + q * covered - 1e-9), firsts)
    return np.asarray(inside[places][covered > 1e-9])
