# SPDX-License-Identifier: GPL-2.0-or-later
"""How probable it is of each commit that it made the step, given the runs so far.

The model: the logarithm of a run's figure is a level, the same for all commits before the step and
another for all from it on, plus an offset of its own for each kernel that was built (its size and
the place of its code move the figure whatever its commit does), plus the run's scatter; both are
normal. The two levels are integrated out with flat priors, the deviations of offsets and of runs
over the grid below. Each commit is as probable as any other before the first run.
"""

from dataclasses import dataclass

import numpy as np

from bisection.evidence import Builds, Evidence, Floats, Ints

# Standard deviations of a run's logarithm, and of a kernel's offset, with their prior weights.
SCATTERS = np.geomspace(0.02, 1.2, 12)
OFFSETS = np.array([0.0, 0.02, 0.04, 0.07, 0.1, 0.14, 0.2])
OFFSET_WEIGHTS = np.array([0.2, 0.15, 0.15, 0.15, 0.15, 0.12, 0.08])


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

    def offset_deviation(self) -> float:
        """The mean of what a kernel's own offset deviates by, as far as the runs tell."""
        return float((self.weights.sum(axis=0) * self.offset).sum())


def posterior(evidence: Evidence) -> Posterior:
    """The posterior of runs that hold some at both ends."""
    builds = Builds.of(evidence)
    assert builds.positions[0] == 0 and builds.positions[-1] == evidence.last
    scatter, offset = (one.ravel() for one in np.meshgrid(SCATTERS, OFFSETS, indexing="ij"))
    prior = np.log(np.tile(OFFSET_WEIGHTS / OFFSET_WEIGHTS.sum(), len(SCATTERS)))
    centre = builds.means.mean()
    means = builds.means - centre
    variance = offset[:, None] ** 2 + scatter[:, None] ** 2 / builds.counts  # setting x kernel
    precision = 1 / variance
    # Sums over the kernels before each gap, and over those after it: setting x gap.
    sums = [np.cumsum(precision * means**power, axis=1) for power in (0, 1, 2)]
    left = [one[:, :-1] for one in sums]
    right = [one[:, -1:] - one[:, :-1] for one in sums]
    misfit = sum(two - one**2 / zero for zero, one, two in (left, right))
    within = -(builds.counts.sum() - len(means)) * np.log(scatter)
    within -= builds.squares.sum() / (2 * scatter**2)
    logs = (prior + within + 0.5 * np.log(precision).sum(axis=1))[:, None]
    logs = logs - 0.5 * (misfit + np.log(left[0] * right[0]))
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
        (left[1] / left[0]).T + centre,
        (1 / left[0]).T,
        (right[1] / right[0]).T + centre,
        (1 / right[0]).T,
    )
