# SPDX-License-Identifier: GPL-2.0-or-later
"""Slow keys beside a verdict: a user notices them, and stalled seconds need not tell of them.

A remedy can shorten all freezes and make every key slow (zram on a slow CPU), or the reverse
(docs/explain/keys.md). The sentence is a comparison of all runs, not a test with a level.
"""

import statistics
from collections.abc import Mapping, Sequence

from analysis.figures.metrics import BY_KEY, SLOW_KEYS, SLOW_WINDOW_KEYS, Measured
from analysis.reading.load import Run
from analysis.reading.words import percent

WHERE = {SLOW_KEYS: "at terminals", SLOW_WINDOW_KEYS: "in windows"}
FEWEST = 2  # runs of either; one run is a sign
BETTER, WORSE = {"improved", "trades"}, {"regressed"}

Shares = Mapping[str, Sequence[float]]  # by metric of WHERE: per cent of the keys, for each run


def slow_keys(runs: Sequence[Run]) -> Shares:
    """The shares of slow keys (per cent) of the runs that have keys, also up to a run's limit."""
    measured = [Measured(run) for run in runs]
    shares = {key: [BY_KEY[key].of(one) for one in measured] for key in WHERE}
    known = {key: [share for share in row if share is not None] for key, row in shares.items()}
    return {key: row for key, row in known.items() if row}


def sentence(verdict: str, base: str, shares: Shares, of_base: Shares) -> str:
    """'Yet more keys were slow in every run: …', where the verdict does not say the same; else ''.

    In every run: in each more (or fewer) than in all of the baseline's.
    """
    sentences = []
    for key, where in WHERE.items():
        some, others = shares.get(key, ()), of_base.get(key, ())
        if min(len(some), len(others)) < FEWEST or verdict == "idle":
            continue
        more, fewer = min(some) > max(others), max(some) < min(others)
        same, contrary = (WORSE, BETTER) if more else (BETTER, WORSE)
        if not (more or fewer) or verdict in same:
            continue
        what = f"{'more' if more else 'fewer'} keys were slow in every run"
        what = f"Yet {what}" if verdict in contrary else what.capitalize()
        mean, mean_of_base = (percent(statistics.fmean(row)) for row in (some, others))
        sentences.append(
            f"{what}: {mean} of those typed {where} took 0.1 s or more ({base}: {mean_of_base})."
        )
    return " ".join(sentences)
