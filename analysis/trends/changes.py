# SPDX-License-Identifier: GPL-2.0-or-later
"""Where a growing series of points changes its level, with one error rate for all tests together.

A point is the runs of one kernel. When a point is added, the stretch since the last change is
divided before its last 1, 2, 4, 8 ... points, and each division is tested on the ranks of the runs.
The level of a test is a share of the whole level; it depends on the number of earlier changes, the
number of points since the last change, and the number of divisions. All shares add up to 1, however
long the series grows. So the union bound holds, however the tests depend on each other, and later
points never withdraw a change.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import stats
from scipy.special import ndtr

from analysis.reading.latency_log import Floats
from analysis.verdicts.statistics import is_exact, rank_sum_tails

LOCATED = 0.05  # level of the test that keeps the places where a change may be
Point = Sequence[float]  # the figure of each run; infinite: the run failed


@dataclass(frozen=True)
class Alarm:
    """A change in the series; points are counted from 0."""

    begin: int  # first point of the stretch that it ended
    at: int  # first point after it
    found: int  # the newest point when it was found
    p: float
    needed: float  # level that p was held to
    higher: bool  # whether the runs after it are higher than those before


def find_alarms(points: Sequence[Point], alpha: float) -> list[Alarm]:
    """The changes in order; every point has at least one run. alpha: 0 to 1, for all tests."""
    alarms: list[Alarm] = []
    begin = 0
    for last in range(1, len(points)):
        change = _test(points, begin, last, len(alarms), alpha)
        if change is None:
            continue
        if alarms and (moved := _moved(points, alarms, change, alpha)):
            alarms[-1] = moved
        else:
            alarms.append(change)
        begin = alarms[-1].at
    return alarms


def level(changes: int, points: int, alpha: float) -> float:
    """The level (0 to 1) of each division, after `changes` changes, `points` after the last."""
    of_changes = 1 / ((changes + 1) * (changes + 2))
    of_points = 1 / (points * (points - 1))
    return alpha * of_changes * of_points / len(divisions(points))


def divisions(points: int) -> list[int]:
    """The sizes, in points, of the later group of each division of `points`: 1, 2, 4 ..."""
    return [2**i for i in range((points - 1).bit_length()) if 2**i < points]


def place(points: Sequence[Point], begin: int, end: int) -> tuple[int, bool]:
    """The first point after the best division of points[begin:end], and whether it goes up.

    By least squares of the logarithms: ranks hardly distinguish one distant point from two points
    of which only one is distant.
    """
    values, ends = _together(points[begin:end])
    finite = np.abs(values[np.isfinite(values)])
    logs = np.log1p(np.clip(values, 0, 2 * finite.max() + 1 if len(finite) else 1))
    sizes, runs = np.array(ends[:-1]), len(logs)
    lower = (sizes * logs.mean() - np.cumsum(logs)[sizes - 1]) / np.sqrt(sizes * (runs - sizes))
    best = int(np.argmax(np.abs(lower)))
    return begin + 1 + best, bool(lower[best] > 0)


def places(points: Sequence[Point], begin: int, at: int, end: int) -> tuple[int, int]:
    """The earliest and latest place, `at` included, where the change of points[begin:end] may be.

    A place is left out if a test divides the points before or after it. So the true place is kept
    with a probability of at least 95 %.
    """
    kept = [one for one in range(begin + 1, end) if one == at or _may_be(points, begin, one, end)]
    return kept[0], kept[-1]


def division_p(values: Floats, later: Sequence[int]) -> list[float]:
    """p of the two-sided permutation test on ranks: the last n values, n in `later`, and the rest.

    Exact if `is_exact`, else the normal approximation with the permutations' own variance, whose
    tails are heavier.
    """
    doubled = np.rint(2 * stats.rankdata(values)).astype(np.int64)
    runs, ordered = len(doubled), tuple(np.sort(doubled).tolist())
    sums = np.cumsum(doubled[::-1])
    p = []
    for size in later:
        total = int(sums[size - 1])
        if is_exact(size, runs - size):
            p.append(min(1.0, 2 * min(rank_sum_tails(ordered, size, total))))
            continue
        sd = np.sqrt(size * (runs - size) / runs * doubled.var(ddof=1))
        away = abs(total - size * (runs + 1)) - 1  # continuity correction, in doubled ranks
        p.append(min(1.0, 2 * float(ndtr(-away / sd))) if sd else 1.0)
    return p


def _test(
    points: Sequence[Point], begin: int, last: int, changes: int, alpha: float
) -> Alarm | None:
    """The change that the newest point, `last`, shows in the stretch from `begin`; None if none."""
    number = last + 1 - begin
    if number < 2:
        return None
    values, ends = _together(points[begin : last + 1])
    later = [len(values) - ends[number - 1 - size] for size in divisions(number)]
    p, needed = min(division_p(values, later)), level(changes, number, alpha)
    if p > needed:
        return None
    at, higher = place(points, begin, last + 1)
    return Alarm(begin, at, last, p, needed, higher)


def _moved(
    points: Sequence[Point], alarms: Sequence[Alarm], change: Alarm, alpha: float
) -> Alarm | None:
    """The last change moved elsewhere, if that explains what would be a further change like it.

    A change that was found early may have been placed next to its true place, which would then look
    like a second change.
    """
    before, changes = alarms[-1], len(alarms)
    at, higher = place(points, before.begin, change.found + 1)
    if at == before.at or not before.higher == change.higher == higher:
        return None
    if _test(points, before.begin, at - 1, changes - 1, alpha) or _test(
        points, at, change.found, changes, alpha
    ):
        return None
    return replace(before, at=at)


def _may_be(points: Sequence[Point], begin: int, at: int, end: int) -> bool:
    """Whether no test divides either side of the place, 1, 2, 4 ... points from the side's ends."""
    p: list[float] = []
    for side in (points[begin:at], points[at:end]):
        for one in (side, side[::-1]):
            values, ends = _together(one)
            p += division_p(values, [len(values) - ends[-1 - n] for n in divisions(len(one))])
    return all(one > LOCATED / len(p) for one in p)


def _together(points: Sequence[Point]) -> tuple[Floats, list[int]]:
    """The figures of all runs in order, and the number of runs up to each point."""
    values = np.concatenate([np.asarray(one, float) for one in points])
    return values, np.cumsum([len(one) for one in points]).tolist()
