# SPDX-License-Identifier: GPL-2.0-or-later
"""What a run of a kernel would tell of where the step is, before it is made."""

from collections.abc import Iterable, Sequence

import numpy as np

from bisection.evidence import Evidence, Floats
from bisection.posterior import Posterior

FEW = 0.01  # of the probability: a gap or a setting with less is left out of what is expected
TINY = 1e-12
LIKELY = 0.02  # a gap with less is no place to build a kernel for
POINTS = 31  # of the figure that a run might have, at which what it would tell is computed
AS_MUCH = 0.85  # a kernel that is there is run again if it tells so much of what a new one would


class Expectation:
    """What the next run would tell, in nats: the mutual information of its figure and the step.

    first, after: the step is known to be after the one position and not after the other (of a run
    that is not over yet, say, each of the two outcomes).
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
        """The position up to which the step is as probable as after it."""
        sums = np.concatenate([[0.0], np.cumsum(self.weights.sum(axis=1))])
        j = min(int(np.searchsorted(sums, 0.5)) - 1, len(self.low) - 1)
        part = (0.5 - sums[j]) / (sums[j + 1] - sums[j])
        return float(self.low[j] + part * (self.high[j] - self.low[j]))

    def tells(self, positions: Sequence[int]) -> Floats:
        """Of a run of each of these commits' kernels."""
        known, settings = self._known, self._settings
        wanted = np.array(positions, dtype=np.int64)
        scatter, offset = known.scatter[settings], known.offset[settings]
        place = np.minimum(np.searchsorted(known.positions, wanted), len(known.positions) - 1)
        built = (known.positions[place] == wanted)[:, None]
        # Kernel x setting: one that was run is known by its runs as well as by its side's level.
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
        # Where the step is at this commit or before it, its kernel is bad.
        rank = known.suspects
        share = (rank[wanted][:, None] - rank[self.low]) / (rank[self.high] - rank[self.low])
        share = np.clip(share, 0, 1)
        parts = np.concatenate([share, 1 - share], axis=1)
        weights = parts[..., None] * np.concatenate([self.weights, self.weights])
        return _information(weights, means, spread) + self._failing(parts)

    def _failing(self, parts: Floats) -> Floats:
        """Of whether the run fails: where none did yet nothing is expected of that."""
        builds = self._known.builds
        failed, ended = np.cumsum(builds.failed), np.cumsum(builds.counts)
        if not failed[-1]:
            return np.zeros(len(parts))
        good = _share(failed[self.gaps], ended[self.gaps])
        bad = _share(failed[-1] - failed[self.gaps], ended[-1] - ended[self.gaps])
        shares = np.concatenate([bad, good])
        weights = parts * np.tile(self.weights.sum(axis=1), 2)
        found: Floats = _entropy(weights @ shares) - weights @ _entropy(shares)
        return found


def _share(failed: Floats, ended: Floats) -> Floats:
    """Of the runs that fail, as they are expected after these."""
    found: Floats = (failed + 0.5) / (failed + ended + 1)
    return found


def _entropy(share: Floats) -> Floats:
    found: Floats = -share * np.log(share) - (1 - share) * np.log1p(-share)
    return found


def _information(weights: Floats, means: Floats, spread: Floats) -> Floats:
    """Of a value about its row, for each kernel: kernel x row x setting.

    The settings of a row are taken together as one normal with their mean and variance.
    """
    share = weights.sum(axis=2)
    part = weights / np.maximum(share, TINY)[..., None]
    mean = (part * means).sum(axis=2)
    variance = (part * (spread**2 + means**2)).sum(axis=2) - mean**2
    there = share > TINY
    deviation = np.sqrt(np.where(there, variance, 1.0))
    low = np.where(there, mean - 3.5 * deviation, np.inf).min(axis=1)
    high = np.where(there, mean + 3.5 * deviation, -np.inf).max(axis=1)
    at = np.linspace(low, high, POINTS, axis=1)[:, None, :]
    z = (at - mean[..., None]) / deviation[..., None]
    rows = (share / deviation)[..., None] * np.exp(-0.5 * z * z)
    rows /= rows.sum(axis=(1, 2), keepdims=True)
    expected = rows.sum(axis=2, keepdims=True) * rows.sum(axis=1, keepdims=True)
    logs = np.log(np.where(rows > TINY, rows / np.where(expected > 0, expected, 1.0), 1.0))
    found: Floats = (rows * logs).sum(axis=(1, 2))
    return found


def builds_there(evidence: Evidence, position: int) -> float:
    """The probability that a kernel of this commit can be run, by those near it that cannot.

    A stretch of commits that do not build is of any length: one that is known over so many commits
    goes on for as many more with even odds.
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
    """The untestable commits, those in one stretch between which no kernel was run."""
    first: int | None = None
    previous = -1
    for one in sorted([*evidence.untestable, *evidence.figures]):
        if one in evidence.figures:
            if first is not None:
                yield first, previous
            first = None
            continue
        first = one if first is None else first
        previous = one
    if first is not None:
        yield first, previous
