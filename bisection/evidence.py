# SPDX-License-Identifier: GPL-2.0-or-later
"""What is known about a row of commits: the figures of their runs, and which are untestable.

Position 0 is the good end and `last` the bad end. One of the commits after position 0 made the
step.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
FLOOR = 0.01  # share of the median added to each figure, so that a figure of 0 has a logarithm


@dataclass(frozen=True)
class Evidence:
    """figures: for each tested position one per run; more is worse, infinite if the run failed.

    untestable: positions whose kernel cannot be built, or whose runs do not reach their end.
    innocent: positions that cannot have made the step, because their kernel is byte for byte that
    of an earlier commit.
    """

    last: int
    figures: Mapping[int, Sequence[float]]
    untestable: frozenset[int] = frozenset()
    innocent: frozenset[int] = frozenset()

    def suspects(self) -> Ints:
        """For each position the number of commits up to it that may have made the step."""
        may = np.ones(self.last + 1, dtype=np.int64)
        may[[0, *self.innocent]] = 0
        return np.cumsum(may)

    def testable(self, position: int) -> bool:
        """Whether a kernel of this commit may be run."""
        return 0 <= position <= self.last and position not in self.untestable


@dataclass(frozen=True)
class Builds:
    """The tested kernels in order of position, with the sums of their runs' logarithms.

    A failed run has no logarithm and is only counted. The mean of a kernel without ended runs is 0.
    """

    positions: Ints
    counts: Floats  # of runs that ended
    means: Floats
    squares: Floats  # sums of the squared deviations of the runs from their kernel's mean
    failed: Floats  # counts of runs that failed

    @classmethod
    def of(cls, evidence: Evidence) -> "Builds":
        """The sums for all kernels that were run."""
        rows = logarithms(evidence.figures)
        positions = sorted(rows)
        logs = [rows[position] for position in positions]
        runs = np.array([len(evidence.figures[place]) for place in positions], dtype=float)
        counts = np.array([len(row) for row in logs], dtype=float)
        return cls(
            np.array(positions, dtype=np.int64),
            counts,
            np.array([row.mean() if len(row) else 0.0 for row in logs]),
            np.array([((row - row.mean()) ** 2).sum() if len(row) else 0.0 for row in logs]),
            runs - counts,
        )

    def centred(self) -> tuple[float, Floats]:
        """The mean of the kernels' mean logarithms, and how much each mean differs from it."""
        ended = self.counts > 0
        centre = float(self.means[ended].mean()) if ended.any() else 0.0
        return centre, np.where(ended, self.means - centre, 0.0)

    def precision(self, scatter: Floats, offset: Floats) -> Floats:
        """1 / variance of each kernel's mean logarithm about its side's level: setting x kernel.

        scatter, offset: standard deviations of logarithms, one per setting.
        """
        inverse: Floats = self.counts / (offset[:, None] ** 2 * self.counts + scatter[:, None] ** 2)
        return inverse

    def likelihood_of_scatter(self, scatter: Floats, precision: Floats) -> Floats:
        """The log-likelihood of each setting, without the part of the means about their levels."""
        ended = self.counts > 0
        logs: Floats = -(self.counts.sum() - ended.sum()) * np.log(scatter)
        logs = logs - self.squares.sum() / (2 * scatter**2)
        logs = logs + 0.5 * np.log(precision[:, ended]).sum(axis=1)
        return logs


def logarithms(figures: Mapping[int, Sequence[float]]) -> dict[int, Floats]:
    """The natural logarithms of the figures of the runs that ended, by position."""
    ended = [value for row in figures.values() for value in row if math.isfinite(value)]
    floor = FLOOR * float(np.median(ended)) if ended else 0.0
    floor = floor or 1.0
    return {
        position: np.log([value + floor for value in row if math.isfinite(value)])
        for position, row in figures.items()
        if row
    }
