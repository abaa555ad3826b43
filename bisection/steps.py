# SPDX-License-Identifier: GPL-2.0-or-later
"""Decides whether the row has a second step; if so, the larger step is searched in part of the row.

With two steps the kernels between them are neither good nor bad, and one step explains them badly.
So the models with one and with two steps are compared by their marginal likelihoods, computed as
the posterior is: a flat prior for each level, and the same grid of offsets and scatter.
"""

import math
from itertools import pairwise

import numpy as np

from bisection import likelihood
from bisection.evidence import Builds, Evidence, Floats, Ints
from bisection.posterior import OFFSET_WEIGHTS, OFFSETS, SCATTERS

SECOND = 0.2  # prior odds of a second step
ODDS = 20.0  # least odds of two steps against one to assume two
LEAST = 6  # kernels: fewer are not enough to judge
FEW = 1e-4
TINY = 1e-9
FAILED = 10.0  # level of kernels all of whose runs failed: higher than any logarithm


def window(evidence: Evidence) -> tuple[int, int]:
    """The positions of two tested kernels between which to search for one step.

    They are the ends of the row if it has one step only.
    """
    low, high = 0, evidence.last
    while True:
        part = within(evidence, low, high)
        inner = _larger(part)
        if inner is None:
            return low, high
        low, high = low + inner[0], low + inner[1]


def within(evidence: Evidence, low: int, high: int) -> Evidence:
    """The evidence between two tested kernels, renumbered as if they were the ends."""
    if (low, high) == (0, evidence.last):
        return evidence

    def inside(places: frozenset[int]) -> frozenset[int]:
        return frozenset(place - low for place in places if low < place <= high)

    return Evidence(
        high - low,
        {place - low: row for place, row in evidence.figures.items() if low <= place <= high},
        inside(evidence.untestable),
        inside(evidence.innocent),
    )


def _larger(evidence: Evidence) -> tuple[int, int] | None:
    """The positions around the larger of two steps; None if there is only one step."""
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
    single = weights[:, None] + likelihood.level(left) + likelihood.level(right) + gaps
    single = single + _failures(failed, ended, np.arange(len(gaps)), None)
    first, second = np.triu_indices(len(gaps), 1)
    middle = left[:, :, second] - left[:, :, first]
    double = weights[:, None] + gaps[first] + gaps[second] + math.log(2 * SECOND)
    for part in (left[:, :, first], middle, right[:, :, second]):
        double = double + likelihood.level(np.where(part[0] > TINY, part, 0.0))
    double = double + _failures(failed, ended, first, second)
    if not _log_sum(double) - _log_sum(single) > math.log(ODDS):
        return None
    setting, pair = np.unravel_index(int(double.argmax()), double.shape)
    a, b = int(first[pair]), int(second[pair])
    levels = [
        part[1, setting] / part[0, setting] if part[0, setting] > TINY else math.inf
        for part in (left[:, :, a], middle[:, :, pair], right[:, :, b])
    ]
    if math.inf in levels:  # no run ended in a part: all failed, and the larger step is beside it
        levels = [level if level != math.inf else FAILED for level in levels]
    if abs(levels[1] - levels[0]) >= abs(levels[2] - levels[1]):
        return 0, int(builds.positions[b])
    return int(builds.positions[a + 1]), evidence.last


def _log_sum(logs: Floats) -> float:
    return float(logs.max() + np.log(np.exp(logs - logs.max()).sum()))


def _failures(failed: Floats, ended: Floats, first: Ints, second: Ints | None) -> Floats:
    """The log-likelihood of the failures in each part; failed, ended: counts up to each kernel."""
    if not failed[-1]:
        return np.zeros(len(first))
    edges = [first, *([] if second is None else [second])]
    parts = [np.stack([failed[edge], ended[edge]]) for edge in edges]
    parts.append(np.stack([np.full(len(first), failed[-1]), np.full(len(first), ended[-1])]))
    logs = likelihood.failures(*parts[0])
    for before, now in pairwise(parts):
        logs = logs + likelihood.failures(*(now - before))
    return logs


def _sums(builds: Builds) -> tuple[Floats, Floats]:
    """The log-weights and the kernels' sums of the settings that single kernels' runs allow."""
    scatter, offset = (grid.ravel() for grid in np.meshgrid(SCATTERS, OFFSETS, indexing="ij"))
    weights = np.log(np.tile(OFFSET_WEIGHTS, len(SCATTERS)))
    weights += builds.likelihood_of_scatter(scatter, np.ones((len(scatter), len(builds.counts))))
    kept = weights > weights.max() + math.log(FEW)
    scatter, offset = scatter[kept], offset[kept]
    precision = builds.precision(scatter, offset)
    weights = np.log(np.tile(OFFSET_WEIGHTS, len(SCATTERS)))[kept]
    weights += builds.likelihood_of_scatter(scatter, precision)
    return weights, likelihood.sums(builds, precision, builds.centred()[1])
