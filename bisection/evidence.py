# SPDX-License-Identifier: GPL-2.0-or-later
"""What is known of a row of commits: the figures of the runs at each, and where there can be none.

Position 0 is the good end and `last` the bad end. One commit after the good end made the step.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
FLOOR = 0.01  # of the median, added to each figure: a run without a stall has a logarithm, too


@dataclass(frozen=True)
class Evidence:
    """figures: of each tested position one a run, more is worse, infinite if the run failed.

    untestable: positions whose kernel cannot be built, or does not bring a run to its end.
    innocent: positions that did not make the step, since their kernel is that of a commit before
    them, byte for byte.
    """

    last: int
    figures: Mapping[int, Sequence[float]]
    untestable: frozenset[int] = frozenset()
    innocent: frozenset[int] = frozenset()

    def suspects(self) -> Ints:
        """How many of the commits up to each position may have made the step."""
        may = np.ones(self.last + 1, dtype=np.int64)
        may[[0, *self.innocent]] = 0
        return np.cumsum(may)

    def testable(self, position: int) -> bool:
        """Whether a kernel of this commit may be run."""
        return 0 <= position <= self.last and position not in self.untestable


@dataclass(frozen=True)
class Builds:
    """The tested kernels in their order, each with the sums of its runs' logarithms.

    A run that failed has none, and is counted; of a kernel of which no run ended the mean is 0.
    """

    positions: Ints
    counts: Floats  # of the runs that ended
    means: Floats
    squares: Floats  # of the deviations of the runs from the mean of their kernel
    failed: Floats

    @classmethod
    def of(cls, evidence: Evidence) -> "Builds":
        """The sums of all kernels that were run."""
        rows = logarithms(evidence.figures)
        positions = sorted(rows)
        logs = [rows[one] for one in positions]
        runs = np.array([len(evidence.figures[one]) for one in positions], dtype=float)
        counts = np.array([len(row) for row in logs], dtype=float)
        return cls(
            np.array(positions, dtype=np.int64),
            counts,
            np.array([row.mean() if len(row) else 0.0 for row in logs]),
            np.array([((row - row.mean()) ** 2).sum() if len(row) else 0.0 for row in logs]),
            runs - counts,
        )

    def centred(self) -> tuple[float, Floats]:
        """The mean of the kernels' means, and what each differs from it."""
        there = self.counts > 0
        centre = float(self.means[there].mean()) if there.any() else 0.0
        return centre, np.where(there, self.means - centre, 0.0)

    def precision(self, scatter: Floats, offset: Floats) -> Floats:
        """How well each kernel's mean is known to be its side's level: setting x kernel."""
        found: Floats = self.counts / (offset[:, None] ** 2 * self.counts + scatter[:, None] ** 2)
        return found

    def likelihood_of_scatter(self, scatter: Floats, precision: Floats) -> Floats:
        """The logarithm, of each setting, but for how far the means are from their levels."""
        there = self.counts > 0
        found: Floats = -(self.counts.sum() - there.sum()) * np.log(scatter)
        found = found - self.squares.sum() / (2 * scatter**2)
        found = found + 0.5 * np.log(precision[:, there]).sum(axis=1)
        return found


def logarithms(figures: Mapping[int, Sequence[float]]) -> dict[int, Floats]:
    """Of each run that ended."""
    ended = [value for row in figures.values() for value in row if math.isfinite(value)]
    floor = FLOOR * float(np.median(ended)) if ended else 0.0
    floor = floor or 1.0
    return {
        position: np.log([value + floor for value in row if math.isfinite(value)])
        for position, row in figures.items()
        if row
    }
