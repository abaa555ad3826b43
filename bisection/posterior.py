# SPDX-License-Identifier: GPL-2.0-or-later
"""How probable it is of each commit that it made the step, given the runs so far.

The model: the logarithm of a run's figure is a level, the same for all commits before the step and
another for all from it on, plus an offset of its own for each kernel that was built (its size and
the place of its code move the figure whatever its commit does), plus the run's scatter; both are
normal. A run fails with a probability that is one before the step and another from it on. Levels
and probabilities are integrated out (`likelihood`), the deviations of offsets and of runs over the
grid below. Each commit is as probable as any other before the first run.
"""

from dataclasses import dataclass

import numpy as np

from bisection import likelihood
from bisection.evidence import Builds, Evidence, Floats, Ints

TINY = 1e-9
# Standard deviations of a run's logarithm, and of a kernel's offset, with their prior weights.
SCATTERS = np.geomspace(0.02, 1.2, 12)
OFFSETS = np.array([0.0, 0.02, 0.04, 0.07, 0.1, 0.14, 0.2])
OFFSET_WEIGHTS = np.array([0.08, 0.1, 0.13, 0.17, 0.22, 0.18, 0.12])


@dataclass(frozen=True)
class Posterior:
    """Of the gaps between neighbouring tested kernels: gap j ends with positions[j + 1].

    weights: gap x setting (a scatter and an offset), sum 1. left, right: the level on either side
    if the step is in that gap, with its variance.
    """

    builds: Builds
    last: int
    suspects: Ints  # up to each position
    scatter: Floats
    offset: Floats
    weights: Floats
    left: Floats
    left_variance: Floats
    right: Floats
    right_variance: Floats

    @property
    def positions(self) -> Ints:
        """Of the tested kernels, ascending; the ends are always among them."""
        return self.builds.positions

    @property
    def gaps(self) -> Floats:
        """The probability that the step is after positions[j], up to positions[j + 1]."""
        found: Floats = self.weights.sum(axis=1)
        return found

    def commits(self) -> Floats:
        """The probability of each commit, by its position; 0 of the good end."""
        found = np.diff(self.suspects, prepend=0).astype(float)
        sizes = np.diff(self.suspects[self.positions])
        each = self.gaps / np.maximum(sizes, 1)
        found[1:] *= np.repeat(each, np.diff(self.positions))
        return found


def posterior(evidence: Evidence) -> Posterior:
    """The posterior of runs that hold some at both ends."""
    builds = Builds.of(evidence)
    assert builds.positions[0] == 0 and builds.positions[-1] == evidence.last
    scatter, offset = (one.ravel() for one in np.meshgrid(SCATTERS, OFFSETS, indexing="ij"))
    prior = np.log(np.tile(OFFSET_WEIGHTS / OFFSET_WEIGHTS.sum(), len(SCATTERS)))
    precision = builds.precision(scatter, offset)
    centre, means = builds.centred()
    # Over the kernels before each gap, and over those after it: power x setting x gap.
    up_to = likelihood.sums(builds, precision, means)
    left = up_to[:, :, :-1]
    right = up_to[:, :, -1:] - left
    right[0] = np.where(right[0] > TINY, right[0], 0.0)  # no run ended there
    logs = (prior + builds.likelihood_of_scatter(scatter, precision))[:, None]
    logs = logs + likelihood.level(left) + likelihood.level(right)
    failed, ended = np.cumsum(builds.failed), np.cumsum(builds.counts)
    if failed[-1]:
        logs = logs + likelihood.failures(failed[:-1], ended[:-1])
        logs = logs + likelihood.failures(failed[-1] - failed[:-1], ended[-1] - ended[:-1])
    suspects = evidence.suspects()
    with np.errstate(divide="ignore"):  # a gap without any is not where the step is
        logs = logs + np.log(np.diff(suspects[builds.positions]))
    weights = np.exp(logs - logs.max())
    weights /= weights.sum()
    return Posterior(
        builds,
        evidence.last,
        suspects,
        scatter,
        offset,
        weights.T,
        *_level(left, centre),
        *_level(right, centre),
    )


def _level(sums: Floats, centre: float) -> tuple[Floats, Floats]:
    """The mean and variance of a side's level: gap x setting; of an unknown one wide."""
    known = sums[0] > 0
    safe = np.where(known, sums[0], 1.0)
    mean = np.where(known, sums[1] / safe, 0.0) + centre
    return mean.T, np.where(known, 1 / safe, likelihood.LEVELS**2).T
