# SPDX-License-Identifier: GPL-2.0-or-later
"""Where a growing series of points changes its level, with one error rate for all tests together.

A point is the runs of one kernel. When a point comes, the stretch since the last change is divided
before its last 1, 2, 4, 8 ... points, and each division is tested on the ranks of the runs. The
level of a test is a share of the whole that depends on how many changes were found before, how many
points came since the last one, and how many divisions there are. All shares together are 1, however
long the series grows. So the union bound holds, however the tests depend on each other, and what
comes later never takes back what was found.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import stats
from scipy.special import ndtr

from analysis.reading.latency_log import Floats
from analysis.verdicts.statistics import is_exact, rank_sum_tails

LOCATED = 0.05  # of the test that keeps the places where a change may be
Point = Sequence[float]  # the figure of each run; infinite: the run failed


@dataclass(frozen=True)
class Alarm:
    """A change that was found; points are counted from 0."""

    begin: int  # first point of the stretch that it ended
    at: int  # first point after it
    found: int  # the newest point when it was found
    p: float
    needed: float  # level that p was held to
    higher: bool  # the runs after it, than those before


def find_alarms(points: Sequence[Point], alpha: float) -> list[Alarm]:
    """The changes in order; every point has a run at least."""
    found: list[Alarm] = []
    begin = 0
    for last in range(1, len(points)):
        change = _test(points, begin, last, len(found), alpha)
        if change is None:
            continue
        if found and (moved := _moved(points, found, change, alpha)):
            found[-1] = moved
        else:
            found.append(change)
        begin = found[-1].at
    return found


def level(changes: int, points: int, alpha: float) -> float:
    """The level of each division, after so many changes, with so many points since the last one."""
    of_changes = 1 / ((changes + 1) * (changes + 2))
    of_points = 1 / (points * (points - 1))
    return alpha * of_changes * of_points / len(divisions(points))


def divisions(points: int) -> list[int]:
    """How many of so many points are the later group of each division: 1, 2, 4 ..."""
    return [2**i for i in range((points - 1).bit_length()) if 2**i < points]


def place(points: Sequence[Point], begin: int, end: int) -> tuple[int, bool]:
    """The first point after the change that divides points[begin:end] best; are those higher?

    By least squares of the logarithms: ranks hardly tell one point that is far away from two of
    which one is.
    """
    values, ends = _together(points[begin:end])
    finite = np.abs(values[np.isfinite(values)])
    logs = np.log1p(np.clip(values, 0, 2 * finite.max() + 1 if len(finite) else 1))
    sizes, runs = np.array(ends[:-1]), len(logs)
    lower = (sizes * logs.mean() - np.cumsum(logs)[sizes - 1]) / np.sqrt(sizes * (runs - sizes))
    best = int(np.argmax(np.abs(lower)))
    return begin + 1 + best, bool(lower[best] > 0)


def places(points: Sequence[Point], begin: int, at: int, end: int) -> tuple[int, int]:
    """The earliest and the latest place where the change of points[begin:end] may be; `at` is one.

    A place is left out if a test divides the points before it, or those after it. So the true one
    is kept in 95 % at least.
    """
    kept = [one for one in range(begin + 1, end) if one == at or _may_be(points, begin, one, end)]
    return kept[0], kept[-1]


def division_p(values: Floats, later: Sequence[int]) -> list[float]:
    """p of the two-sided permutation test on ranks of the last so many values against the others.

    Exact where `is_exact` says so. Beyond that the normal approximation with the permutations' own
    variance, whose tails are the heavier ones.
    """
    doubled = np.rint(2 * stats.rankdata(values)).astype(np.int64)
    runs, ordered = len(doubled), tuple(np.sort(doubled).tolist())
    sums = np.cumsum(doubled[::-1])
    found = []
    for size in later:
        total = int(sums[size - 1])
        if is_exact(size, runs - size):
            found.append(min(1.0, 2 * min(rank_sum_tails(ordered, size, total))))
            continue
        sd = np.sqrt(size * (runs - size) / runs * doubled.var(ddof=1))
        away = abs(total - size * (runs + 1)) - 1  # for continuity, in doubled ranks
        found.append(min(1.0, 2 * float(ndtr(-away / sd))) if sd else 1.0)
    return found


def _test(
    points: Sequence[Point], begin: int, last: int, changes: int, alpha: float
) -> Alarm | None:
    """The change that the newest point shows in the stretch that began there."""
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
    points: Sequence[Point], found: Sequence[Alarm], change: Alarm, alpha: float
) -> Alarm | None:
    """The last change elsewhere, if it explains what would be one more of its kind.

    A change that was found early may have been placed beside where it is; its neighbour would then
    look like a second one.
    """
    before, changes = found[-1], len(found)
    at, higher = place(points, before.begin, change.found + 1)
    if at == before.at or not before.higher == change.higher == higher:
        return None
    if _test(points, before.begin, at - 1, changes - 1, alpha) or _test(
        points, at, change.found, changes, alpha
    ):
        return None
    return replace(before, at=at)


def _may_be(points: Sequence[Point], begin: int, at: int, end: int) -> bool:
    """Whether no test divides either side of the place, 1, 2, 4 ... points from its ends."""
    p: list[float] = []
    for side in (points[begin:at], points[at:end]):
        for one in (side, side[::-1]):
            values, ends = _together(one)
            p += division_p(values, [len(values) - ends[-1 - n] for n in divisions(len(one))])
    return all(one > LOCATED / len(p) for one in p)


def _together(points: Sequence[Point]) -> tuple[Floats, list[int]]:
    """All runs in order, and how many there are up to each point."""
    values = np.concatenate([np.asarray(one, float) for one in points])
    return values, np.cumsum([len(one) for one in points]).tolist()
