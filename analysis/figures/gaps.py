# SPDX-License-Identifier: GPL-2.0-or-later
"""Arithmetic of gaps, which are arrays of seconds: shares and percentiles of time, not of lines."""

import numpy as np

from analysis.reading.latency_log import Floats
from analysis.reading.streams import Stream

WINDOW = 10.0  # s: of the nested percentiles
MOST_WINDOWS = 100_000  # beyond 11 days a stamp is damage, not a time


def percent_in(length: Floats, threshold: float) -> float:
    """Of all this time, how much lies in gaps of at least the threshold."""
    return 100 * float(length[length >= threshold].sum()) / float(length.sum())


def silences(streams: list[Stream]) -> tuple[Floats, Floats]:
    """Begin (elapsed) and length of every gap of the streams, the open gaps included; seconds."""
    ends = [np.append(stream.elapsed, stream.until) for stream in streams]
    lengths = [np.append(stream.gap, stream.open_gap) for stream in streams]
    length = np.concatenate(lengths)
    return np.concatenate(ends) - length, length


def expected_wait(length: Floats) -> float:
    """Seconds until the next line, for somebody who looks at a random moment at a random stream.

    A gap of g seconds is met with the probability g / total and then lasts g / 2 longer on the
    average: sum(g^2) / 2 / total. What an open gap lasts beyond the run is not known, not counted.
    """
    return float((length**2).sum() / 2 / length.sum())


def quantile_by_time(length: Floats, weight: Floats, q: float) -> float:
    """The shortest gap such that at least q of the time (weight) is spent in gaps up to it."""
    order = np.argsort(length, kind="stable")
    reached = np.cumsum(weight[order])
    return float(length[order][np.searchsorted(reached, q * reached[-1] * (1 - 1e-12))])


def window_quantiles(begin: Floats, length: Floats, q: float) -> Floats | None:
    """quantile_by_time of each WINDOW of one stream that has any gap; None if they are too many.

    A gap has in each window only the seconds that lie there: a long tooth fills few windows with
    WINDOW seconds each, however long it is, and leaves the others as they are.
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
    # A nanosecond less: the sums are rounded, and no gap is known to less than a millisecond.
    places = np.maximum(np.searchsorted(reached, before + q * covered - 1e-9), firsts)
    return np.asarray(inside[places][covered > 1e-9])
