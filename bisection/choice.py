# SPDX-License-Identifier: GPL-2.0-or-later
"""How much the next run of each kernel is expected to tell about the place of the step."""

from collections.abc import Iterable, Sequence

import numpy as np

from bisection.evidence import Evidence, Floats
from bisection.posterior import Posterior

FEW = 0.01  # probability: less probable gaps and settings are left out of the expectation
TINY = 1e-12
LIKELY = 0.02  # probability: in less probable gaps no kernel is built
POINTS = 31  # values of the next run's figure over which the information is integrated
AS_MUCH = 0.85  # a built kernel is preferred if it tells at least this share of the best one's


class Expectation:
    """What the next run is expected to tell: the mutual information, in nats, of figure and step.

    first, after: assume that the step is after position `first` and at most at `after` (as each
    of the two outcomes of a run that is not over yet would show).
    """

    def __init__(self, known: Posterior, first: int = 0, after: int | None = None) -> None:
        self._known = known
        last = known.last if after is None else after
        positions = known.positions
        low = np.maximum(positions[:-1], first)
        high = np.minimum(positions[1:], last)
        high = np.maximum(low, high)
        count = known.suspects
        share = (count[high] - count[low]) / np.maximum(np.diff(count[positions]), 1)
        weights = known.weights * share[:, None]
        self.mass = float(weights.sum())
        if self.mass:
            weights = weights / self.mass
        self.gaps = np.flatnonzero(weights.sum(axis=1) > FEW)
        self._settings = np.flatnonzero(weights.sum(axis=0) > FEW)
        self.low, self.high = low[self.gaps], high[self.gaps]
        kept = weights[np.ix_(self.gaps, self._settings)]
        self.weights = kept / kept.sum() if kept.size else kept

    def median(self) -> float:
        """The position (a fraction between commits) with even odds that the step is up to it."""
        sums = np.concatenate([[0.0], np.cumsum(self.weights.sum(axis=1))])
        j = min(int(np.searchsorted(sums, 0.5)) - 1, len(self.low) - 1)
        part = (0.5 - sums[j]) / (sums[j + 1] - sums[j])
        return float(self.low[j] + part * (self.high[j] - self.low[j]))

    def tells(self, positions: Sequence[int]) -> Floats:
        """The nats that one run of each of these positions' kernels is expected to tell."""
        known, settings = self._known, self._settings
        wanted = np.array(positions, dtype=np.int64)
        scatter, offset = known.scatter[settings], known.offset[settings]
        place = np.minimum(np.searchsorted(known.positions, wanted), len(known.positions) - 1)
        built = (known.positions[place] == wanted)[:, None]
        # Kernel x setting: a kernel that was run is known by its runs and by its side's level.
        count = known.builds.counts[place, None]
        built &= count > 0
        count = np.maximum(count, 1)
        pull = built * offset**2 / (offset**2 + scatter**2 / count)
        own = pull * known.builds.means[place, None]
        extra = scatter**2 + np.where(built, pull * scatter**2 / count, offset**2)
        gaps = np.ix_(self.gaps, settings)
        levels = np.concatenate([known.right[gaps], known.left[gaps]])
        variances = np.concatenate([known.right_variance[gaps], known.left_variance[gaps]])
        means = (1 - pull)[:, None] * levels + own[:, None]
        spread = np.sqrt((1 - pull)[:, None] ** 2 * variances + extra[:, None])
        # A commit's kernel is bad if the step is at this commit or before it.
        rank = known.suspects
        share = (rank[wanted][:, None] - rank[self.low]) / (rank[self.high] - rank[self.low])
        share = np.clip(share, 0, 1)
        parts = np.concatenate([share, 1 - share], axis=1)
        weights = parts[..., None] * np.concatenate([self.weights, self.weights])
        return _information(weights, means, spread) + self._failing(parts)

    def _failing(self, parts: Floats) -> Floats:
        """The nats that the run's failing or not tells, for each kernel.

        0 as long as no run failed.
        """
        builds = self._known.builds
        failed, ended = np.cumsum(builds.failed), np.cumsum(builds.counts)
        if not failed[-1]:
            return np.zeros(len(parts))
        good = _share(failed[self.gaps], ended[self.gaps])
        bad = _share(failed[-1] - failed[self.gaps], ended[-1] - ended[self.gaps])
        shares = np.concatenate([bad, good])
        weights = parts * np.tile(self.weights.sum(axis=1), 2)
        information: Floats = _entropy(weights @ shares) - weights @ _entropy(shares)
        return information


def _share(failed: Floats, ended: Floats) -> Floats:
    """The expected share of failing runs, given the counts of failed and ended ones."""
    expected: Floats = (failed + 0.5) / (failed + ended + 1)
    return expected


def _entropy(share: Floats) -> Floats:
    nats: Floats = -share * np.log(share) - (1 - share) * np.log1p(-share)
    return nats


def _information(weights: Floats, means: Floats, spread: Floats) -> Floats:
    """The nats that a value tells about its row, for each kernel; inputs: kernel x row x setting.

    The settings of a row are approximated by one normal with their mean and variance.
    """
    share = weights.sum(axis=2)
    part = weights / np.maximum(share, TINY)[..., None]
    mean = (part * means).sum(axis=2)
    variance = (part * (spread**2 + means**2)).sum(axis=2) - mean**2
    possible = share > TINY
    deviation = np.sqrt(np.where(possible, variance, 1.0))
    low = np.where(possible, mean - 3.5 * deviation, np.inf).min(axis=1)
    high = np.where(possible, mean + 3.5 * deviation, -np.inf).max(axis=1)
    at = np.linspace(low, high, POINTS, axis=1)[:, None, :]
    z = (at - mean[..., None]) / deviation[..., None]
    rows = (share / deviation)[..., None] * np.exp(-0.5 * z * z)
    rows /= rows.sum(axis=(1, 2), keepdims=True)
    expected = rows.sum(axis=2, keepdims=True) * rows.sum(axis=1, keepdims=True)
    logs = np.log(np.where(rows > TINY, rows / np.where(expected > 0, expected, 1.0), 1.0))
    nats: Floats = (rows * logs).sum(axis=(1, 2))
    return nats


def builds_there(evidence: Evidence, position: int) -> float:
    """The probability that this commit's kernel can be run, by the untestable commits near it.

    A stretch of untestable commits may have any length: one that is known over N commits goes on
    for N more with even odds.
    """
    if position in evidence.figures:
        return 1.0
    chance = 1.0
    for first, last in stretches(evidence):
        span = last - first + 1
        if first <= position <= last:
            return span / (span + 8.0) if span < 2 else 1 / (span + 1.0)
        distance = first - position if position < first else position - last
        chance = min(chance, distance / (distance + span))
    return chance


def stretches(evidence: Evidence) -> Iterable[tuple[int, int]]:
    """The first and last positions of each stretch of untestable commits without a run between."""
    first: int | None = None
    previous = -1
    for position in sorted([*evidence.untestable, *evidence.figures]):
        if position in evidence.figures:
            if first is not None:
                yield first, previous
            first = None
            continue
        first = position if first is None else first
        previous = position
    if first is not None:
        yield first, previous
