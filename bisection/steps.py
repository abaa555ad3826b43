# SPDX-License-Identifier: GPL-2.0-or-later
"""Whether the row holds a second step; then the larger one is searched in a part of the row.

With two steps the kernels between them are neither good nor bad, and one step explains them badly.
So one and two are compared by their marginal likelihoods, as the posterior is made: each level with
a flat prior, offsets and scatter over the same grid.
"""

import math
from itertools import pairwise

import numpy as np

from bisection import likelihood
from bisection.evidence import Builds, Evidence, Floats, Ints
from bisection.posterior import OFFSET_WEIGHTS, OFFSETS, SCATTERS

SECOND = 0.2  # prior odds of a second step
ODDS = 20.0  # of two steps against one, from which on there are two
LEAST = 6  # kernels: fewer do not tell
FEW = 1e-4
TINY = 1e-9
FAILED = 10.0  # the level, beyond any logarithm, of kernels all of whose runs failed


def window(evidence: Evidence) -> tuple[int, int]:
    """The positions of the kernels between which one step is searched; the whole row if it has one.

    Both were run.
    """
    low, high = 0, evidence.last
    while True:
        part = within(evidence, low, high)
        found = _larger(part)
        if found is None:
            return low, high
        low, high = low + found[0], low + found[1]


def within(evidence: Evidence, low: int, high: int) -> Evidence:
    """What is known from one kernel to another, as if they were the ends."""
    if (low, high) == (0, evidence.last):
        return evidence

    def inside(places: frozenset[int]) -> frozenset[int]:
        return frozenset(one - low for one in places if low < one <= high)

    return Evidence(
        high - low,
        {one - low: row for one, row in evidence.figures.items() if low <= one <= high},
        inside(evidence.untestable),
        inside(evidence.innocent),
    )


def _larger(evidence: Evidence) -> tuple[int, int] | None:
    """The part of the row with the larger of two steps; None if there is one."""
    builds = Builds.of(evidence)
    if len(builds.positions) < LEAST:
        return None
    with np.errstate(divide="ignore"):
        gaps = np.log(np.diff(evidence.suspects()[builds.positions]))
    gaps -= np.log(np.exp(gaps).sum())
    weights, sums = _sums(builds)
    left = sums[:, :, :-1]  # power x setting x gap
    right = sums[:, :, -1:] - left
    failed, ended = np.cumsum(builds.failed), np.cumsum(builds.counts)
    one = weights[:, None] + likelihood.level(left) + likelihood.level(right) + gaps
    one = one + _failures(failed, ended, np.arange(len(gaps)), None)
    first, second = np.triu_indices(len(gaps), 1)
    middle = left[:, :, second] - left[:, :, first]
    two = weights[:, None] + gaps[first] + gaps[second] + math.log(2 * SECOND)
    for part in (left[:, :, first], middle, right[:, :, second]):
        two = two + likelihood.level(np.where(part[0] > TINY, part, 0.0))
    two = two + _failures(failed, ended, first, second)
    if not _log_sum(two) - _log_sum(one) > math.log(ODDS):
        return None
    setting, pair = np.unravel_index(int(two.argmax()), two.shape)
    a, b = int(first[pair]), int(second[pair])
    levels = [
        part[1, setting] / part[0, setting] if part[0, setting] > TINY else math.inf
        for part in (left[:, :, a], middle[:, :, pair], right[:, :, b])
    ]
    if math.inf in levels:  # where no run ended, all failed: the larger step is beside it
        levels = [one if one != math.inf else FAILED for one in levels]
    if abs(levels[1] - levels[0]) >= abs(levels[2] - levels[1]):
        return 0, int(builds.positions[b])
    return int(builds.positions[a + 1]), evidence.last


def _log_sum(logs: Floats) -> float:
    return float(logs.max() + np.log(np.exp(logs - logs.max()).sum()))


def _failures(failed: Floats, ended: Floats, first: Ints, second: Ints | None) -> Floats:
    """The logarithm, of what failed in each part; failed, ended: runs of the kernels up to each."""
    if not failed[-1]:
        return np.zeros(len(first))
    edges = [first, *([] if second is None else [second])]
    parts = [np.stack([failed[one], ended[one]]) for one in edges]
    parts.append(np.stack([np.full(len(first), failed[-1]), np.full(len(first), ended[-1])]))
    found = likelihood.failures(*parts[0])
    for before, now in pairwise(parts):
        found = found + likelihood.failures(*(now - before))
    return found


def _sums(builds: Builds) -> tuple[Floats, Floats]:
    """Of each setting that the runs of single kernels allow: its weight, and the kernels' sums."""
    scatter, offset = (one.ravel() for one in np.meshgrid(SCATTERS, OFFSETS, indexing="ij"))
    weights = np.log(np.tile(OFFSET_WEIGHTS, len(SCATTERS)))
    weights += builds.likelihood_of_scatter(scatter, np.ones((len(scatter), len(builds.counts))))
    kept = weights > weights.max() + math.log(FEW)
    scatter, offset = scatter[kept], offset[kept]
    precision = builds.precision(scatter, offset)
    weights = np.log(np.tile(OFFSET_WEIGHTS, len(SCATTERS)))[kept]
    weights += builds.likelihood_of_scatter(scatter, precision)
    return weights, likelihood.sums(builds, precision, builds.centred()[1])
