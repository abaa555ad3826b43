# SPDX-License-Identifier: GPL-2.0-or-later
"""How sure a verdict has to be, and which numbers of runs can be (docs/explain/verdicts.md)."""

import math

ALPHA = 0.05
MARGIN = 0.1  # ratio that still counts as equal, unless a plan says otherwise
LOOK_RATIO = 1.4  # each look at a growing campaign comes with so many times the runs of the last


def attainable_p(size: int, others: int) -> float:
    """The smallest two-sided p of an exact permutation test that so many runs could give."""
    return min(1.0, 2 / math.comb(size + others, size))


def can_decide(runs: int, level: float = ALPHA) -> bool:
    """Whether so many runs of each of two variants can reach the level at all."""
    return attainable_p(runs, runs) <= level


def level_of_a_look(alpha: float, looks: int, extensions: int) -> float:
    """The level of one look at the verdicts.

    Each extension has half the level of what came before it, however often the campaign grows:
    all looks together err in at most `alpha` (2 - 2^-extensions). Planned looks share theirs.
    """
    return alpha * 0.5**extensions / max(1, looks)


def looks(limit: int, comparisons: int) -> tuple[int, ...]:
    """Numbers of runs of each variant at which a growing campaign is looked at, the last is limit.

    The first is the smallest from which an exact two-sided permutation test can reach the level of
    one look, ALPHA / looks, for all comparisons (Holm). ValueError if limit is too small for any.
    """
    for first in range(2, limit + 1):
        sizes = [first]
        while sizes[-1] < limit:
            sizes.append(min(limit, max(sizes[-1] + 1, round(sizes[-1] * LOOK_RATIO))))
        if can_decide(first, level_of_a_look(ALPHA, len(sizes), 0) / max(1, comparisons)):
            return tuple(sizes)
    raise ValueError(
        f"up to {limit} runs of each could not give a verdict on {comparisons} comparison(s): "
        "ask for more"
    )
