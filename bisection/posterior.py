# SPDX-License-Identifier: GPL-2.0-or-later
"""The probability of each commit that it made the step, given the runs so far.

The model: the logarithm of a run's figure is a sum of three parts. The level is the same for all
commits before the step, and another for the step and all later ones. Each built kernel has its own
offset (its size and the place of its code change the figure, whatever its commit does). Each run
has its scatter. Offset and scatter are normal. Runs fail with one probability before the step, and
with another one from the step on. `likelihood` integrates over levels and probabilities, and this
module over the standard deviations of offset and scatter, on the grid below. Before the first run
all commits are equally probable.
"""

from dataclasses import dataclass

import numpy as np

from bisection import likelihood
from bisection.evidence import Builds, Evidence, Floats, Ints

TINY = 1e-9
# Standard deviations of scatter and of offsets (natural logarithms); prior weights of the latter.
SCATTERS = np.geomspace(0.02, 1.2, 12)
OFFSETS = np.array([0.0, 0.02, 0.04, 0.07, 0.1, 0.14, 0.2])
OFFSET_WEIGHTS = np.array([0.08, 0.1, 0.13, 0.17, 0.22, 0.18, 0.12])


@dataclass(frozen=True)
class Posterior:
    """The probabilities of the gaps between neighbouring tested kernels; gap j ends with
    positions[j + 1].

    weights: gap x setting (a scatter and an offset), sum 1. left, right: the level (a logarithm) on
    either side if the step is in that gap, and its variance.
    """

    builds: Builds
    last: int
    suspects: Ints  # count up to each position
    scatter: Floats
    offset: Floats
    weights: Floats
    left: Floats
    left_variance: Floats
    right: Floats
    right_variance: Floats

    @property
    def positions(self) -> Ints:
        """The positions of the tested kernels, ascending; the ends are always among them."""
        return self.builds.positions

    @property
    def gaps(self) -> Floats:
        """The probability that the step is after positions[j], up to positions[j + 1]."""
        probabilities: Floats = self.weights.sum(axis=1)
        return probabilities

    def commits(self) -> Floats:
        """The probability of each commit, by its position; the good end has 0."""
        probabilities = np.diff(self.suspects, prepend=0).astype(float)
        sizes = np.diff(self.suspects[self.positions])
        per_commit = self.gaps / np.maximum(sizes, 1)
        probabilities[1:] *= np.repeat(per_commit, np.diff(self.positions))
        return probabilities


def posterior(evidence: Evidence) -> Posterior:
    """The posterior, given runs of at least both ends."""
    builds = Builds.of(evidence)
    assert builds.positions[0] == 0 and builds.positions[-1] == evidence.last
    scatter, offset = (grid.ravel() for grid in np.meshgrid(SCATTERS, OFFSETS, indexing="ij"))
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
    with np.errstate(divide="ignore"):  # a gap without suspects cannot hold the step
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
    """The mean and variance of a side's level: gap x setting.

    An unknown level's variance is wide.
    """
    known = sums[0] > 0
    safe = np.where(known, sums[0], 1.0)
    mean = np.where(known, sums[1] / safe, 0.0) + centre
    return mean.T, np.where(known, 1 / safe, likelihood.LEVELS**2).T
