# SPDX-License-Identifier: GPL-2.0-or-later
"""Whether the row holds a second step; then the larger one is searched in a part of the row.

With two steps the kernels between them are neither good nor bad, and one step explains them badly.
So one and two are compared by their marginal likelihoods, as the posterior is made: each level with
a flat prior (a third one over LEVELS in the logarithm), offsets and scatter over the same grid.
"""

import math

import numpy as np

from bisection.evidence import Builds, Evidence, Floats
from bisection.posterior import OFFSET_WEIGHTS, OFFSETS, SCATTERS

LEVELS = 2.0  # the width of a third level's prior, in logarithms
SECOND = 0.2  # prior odds of a second step
ODDS = 20.0  # of two steps against one, from which on there are two
LEAST = 6  # kernels: fewer do not tell
FEW = 1e-4


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
    one = weights[:, None] - 0.5 * (_misfit(left) + _misfit(right)) + gaps
    count = len(gaps)
    first, second = np.triu_indices(count, 1)
    middle = left[:, :, second] - left[:, :, first]
    two = weights[:, None] - 0.5 * (
        _misfit(left[:, :, first]) + _misfit(middle) + _misfit(right[:, :, second])
    )
    two += gaps[first] + gaps[second] + math.log(2 * SECOND * math.sqrt(2 * math.pi) / LEVELS)
    if not _log_sum(two) - _log_sum(one) > math.log(ODDS):
        return None
    setting, pair = np.unravel_index(int(two.argmax()), two.shape)
    a, b = int(first[pair]), int(second[pair])
    levels = [
        part[1, setting] / part[0, setting]
        for part in (left[:, :, a], middle[:, :, pair], right[:, :, b])
    ]
    if abs(levels[1] - levels[0]) >= abs(levels[2] - levels[1]):
        return 0, int(builds.positions[b])
    return int(builds.positions[a + 1]), evidence.last


def _log_sum(logs: Floats) -> float:
    return float(logs.max() + np.log(np.exp(logs - logs.max()).sum()))


def _sums(builds: Builds) -> tuple[Floats, Floats]:
    """Of each setting that the runs of single kernels allow: its weight, and the kernels' sums."""
    scatter, offset = (one.ravel() for one in np.meshgrid(SCATTERS, OFFSETS, indexing="ij"))
    weights = np.log(np.tile(OFFSET_WEIGHTS, len(SCATTERS)))
    weights -= (builds.counts.sum() - len(builds.counts)) * np.log(scatter)
    weights -= builds.squares.sum() / (2 * scatter**2)
    kept = weights > weights.max() + math.log(FEW)
    scatter, offset, weights = scatter[kept], offset[kept], weights[kept]
    precision = 1 / (offset[:, None] ** 2 + scatter[:, None] ** 2 / builds.counts)
    weights += 0.5 * np.log(precision).sum(axis=1)
    means = builds.means - builds.means.mean()
    return weights, np.stack([np.cumsum(precision * means**power, axis=1) for power in range(3)])


def _misfit(sums: Floats) -> Floats:
    """Twice the negative logarithm of the likelihood of kernels with one level."""
    zero, one, two = sums
    found: Floats = two - one**2 / zero + np.log(zero)
    return found
