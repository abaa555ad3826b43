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
FAILED_TIMES = 2.0  # a failed run is entered as so many times the worst run that ended
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
    """The tested kernels in their order, each with the sums of its runs' logarithms."""

    positions: Ints
    counts: Floats
    means: Floats
    squares: Floats  # of the deviations of the runs from the mean of their kernel

    @classmethod
    def of(cls, evidence: Evidence) -> "Builds":
        """The sums of all kernels that were run."""
        logs = logarithms(evidence.figures)
        positions = sorted(logs)
        rows = [logs[one] for one in positions]
        return cls(
            np.array(positions, dtype=np.int64),
            np.array([len(row) for row in rows], dtype=float),
            np.array([row.mean() for row in rows]),
            np.array([((row - row.mean()) ** 2).sum() for row in rows]),
        )


def logarithms(figures: Mapping[int, Sequence[float]]) -> dict[int, Floats]:
    """Of each run; one that failed ranks after all that ended, at a distance that is finite."""
    ended = [value for row in figures.values() for value in row if math.isfinite(value)]
    floor = FLOOR * float(np.median(ended)) if ended else 0.0
    floor = floor or 1.0
    worst = FAILED_TIMES * (max(ended, default=0.0) + floor)
    return {
        position: np.log([value + floor if math.isfinite(value) else worst for value in row])
        for position, row in figures.items()
        if row
    }
