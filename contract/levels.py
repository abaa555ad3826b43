# SPDX-License-Identifier: GPL-2.0-or-later
"""Significance levels, and the numbers of runs that can reach them (docs/explain/verdicts.md)."""

import itertools
import math
from collections.abc import Iterable, Sequence

ALPHA = 0.05
MARGIN = 0.1  # ratio that still counts as equal, unless a plan says otherwise
LOOK_RATIO = 1.4  # between two looks at a growing campaign its runs grow by this factor


def attainable_p(size: int, others: int) -> float:
    """The smallest two-sided p (0 to 1) of an exact permutation test with so many runs."""
    return min(1.0, 2 / math.comb(size + others, size))


def can_decide(runs: int, others: int | None = None, *, level: float = ALPHA) -> bool:
    """Whether so many runs of two variants can reach the level (0 to 1) at all.

    others: runs of the second variant; None: as many as of the first.
    """
    return attainable_p(runs, runs if others is None else others) <= level


def compared_runs(families: Iterable[Sequence[int]]) -> list[tuple[int, int]]:
    """The runs of the baseline and of the variant in each comparison; both have some.

    families: the runs of each variant of a workload, the baseline's first.
    """
    return [
        (family[0], other) for family in families for other in family[1:] if family[0] and other
    ]


def few_runs_warning(families: Iterable[Sequence[int]], level: float = ALPHA) -> str:
    """A warning that runs cannot give any verdict, with the number that can; empty if they can.

    families: as `compared_runs`. All comparisons are corrected together (Holm), so one of them must
    reach the level (0 to 1) divided by their number.
    """
    pairs = compared_runs(families)
    needed = level / max(1, len(pairs))
    if not pairs or any(can_decide(*pair, level=needed) for pair in pairs):
        return ""
    enough = next(n for n in itertools.count(2) if can_decide(n, level=needed))
    sizes = [size for pair in pairs for size in pair]
    least, most = min(sizes), max(sizes)
    runs = f"{most} run{'s' if most > 1 else ''}" if least == most else f"{least} to {most} runs"
    takes = "1 comparison takes" if len(pairs) == 1 else f"{len(pairs)} comparisons take"
    return f"{runs} of each variant cannot give a verdict: {takes} {enough} of each"


def level_of_a_look(alpha: float, looks: int, extensions: int) -> float:
    """The level (0 to 1) of one look at the verdicts.

    Each extension of a campaign halves the level, however often the campaign is extended: all looks
    together err with a probability of at most `alpha` (2 - 2^-extensions). Planned looks share
    one level equally.
    """
    return alpha * 0.5**extensions / max(1, looks)


def looks(limit: int, comparisons: int) -> tuple[int, ...]:
    """Numbers of runs per variant after which a growing campaign is judged; the last is `limit`.

    The first number is the smallest with which an exact two-sided permutation test can reach the
    level of one look, ALPHA / looks, for all comparisons (Holm). ValueError if even `limit` runs
    are too few.
    """
    for first in range(2, limit + 1):
        sizes = [first]
        while sizes[-1] < limit:
            sizes.append(min(limit, max(sizes[-1] + 1, round(sizes[-1] * LOOK_RATIO))))
        if can_decide(first, level=level_of_a_look(ALPHA, len(sizes), 0) / max(1, comparisons)):
            return tuple(sizes)
    raise ValueError(
        f"up to {limit} runs of each could not give a verdict on {comparisons} comparison(s): "
        "ask for more"
    )
