# SPDX-License-Identifier: GPL-2.0-or-later
"""Slow keys beside a verdict: a user notices them, and stalled seconds need not show them.

A remedy can shorten all freezes and make most keys slow (zram on a slow CPU), or the reverse
(docs/explain/keys.md). The sentence states what was measured; it is no test with a level.
"""

import statistics
from collections.abc import Mapping, Sequence

from analysis.figures.metrics import BY_KEY, SLOW_KEYS, SLOW_WINDOW_KEYS, Measured
from analysis.reading.load import Run
from analysis.reading.words import percent

WHERE = {SLOW_KEYS: "at terminals", SLOW_WINDOW_KEYS: "in windows"}
FEWEST = 4  # runs of either: with three, one order in ten separates them by chance
BETTER, WORSE = {"improved", "trades"}, {"regressed"}
LEAST_POINTS = 5.0  # per cent of the keys: in a short run one key of twenty

Shares = Mapping[str, Sequence[float]]  # by metric of WHERE: per cent of the keys, for each run


def slow_key_shares(runs: Sequence[Run]) -> Shares:
    """The shares of slow keys (per cent) of the runs that have keys, also up to a run's limit."""
    measured = [Measured(run) for run in runs]
    shares = {key: [BY_KEY[key].of(figures) for figures in measured] for key in WHERE}
    return {
        key: [share for share in of_runs if share is not None] for key, of_runs in shares.items()
    }


def slow_keys_sentence(verdict: str, base: str, shares: Shares, base_shares: Shares) -> str:
    """'Yet in each of its runs a larger share of keys was slow …: 75 % …, against 9 %.'

    shares, base_shares: of all runs that count, and none failed. '' if the runs overlap, if they
    are few, if the means differ by less than LEAST_POINTS, or if the verdict says the same.
    """
    sentences = []
    for key, where in WHERE.items():
        ours, theirs = shares.get(key, ()), base_shares.get(key, ())
        if min(len(ours), len(theirs)) < FEWEST or verdict == "idle":
            continue
        mean, base_mean = statistics.fmean(ours), statistics.fmean(theirs)
        larger, smaller = min(ours) > max(theirs), max(ours) < min(theirs)
        if not (larger or smaller) or abs(mean - base_mean) < LEAST_POINTS:
            continue
        agreeing, contrary = (WORSE, BETTER) if larger else (BETTER, WORSE)
        if verdict in agreeing:
            continue
        sentences.append(
            f"{'Yet in' if verdict in contrary else 'In'} each of its runs a "
            f"{'larger' if larger else 'smaller'} share of keys was slow than in any of {base}'s: "
            f"{percent(mean)} of those typed {where} took 0.1 s or more, against "
            f"{percent(base_mean)}."
        )
    return " ".join(sentences)
