# SPDX-License-Identifier: GPL-2.0-or-later
"""The search: which kernel to run next, and when there is an answer."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal

import numpy as np

from bisection.choice import AS_MUCH, LIKELY, Expectation, builds_there
from bisection.evidence import Evidence, Floats
from bisection.posterior import Posterior, posterior
from bisection.steps import window, within

SURE = 0.95
ENOUGH = 0.008  # nats: a run that tells less is not worth its time
MOST_RUNS = 150
LEARNT = 10  # runs of a kernel, from which on one more says little of its own offset
NAMED = 20  # ranges that are named, the most probable


@dataclass(frozen=True)
class Range:
    """Commits first..last, of which one made the step with this probability.

    Where it is not one commit, most of them are untestable, and none was run but the last.
    """

    first: int
    last: int
    probability: float


@dataclass(frozen=True)
class Step:
    """What the search does next, and what it knows.

    found: a range is sure; unsure: no run would tell enough, or there were too many; else `run`,
    the position of the kernel to run, and what a run of it is expected to tell. shares: the
    probability of each commit, by its position: of the larger step, where there are two.
    """

    word: Literal["run", "found", "unsure"]
    shares: Floats
    ranges: tuple[Range, ...]  # the most probable first
    run: int = -1
    tells: float = 0.0
    why: str = ""

    @property
    def left(self) -> int:
        """How many commits hold the step with the probability that is sure."""
        return int(np.searchsorted(np.cumsum(np.sort(self.shares)[::-1]), SURE)) + 1


def ranges(evidence: Evidence, known: Posterior) -> tuple[Range, ...]:
    """What could be told apart at all, the most probable first."""
    testable = np.ones(evidence.last + 1, dtype=bool)
    testable[list(evidence.untestable)] = False
    edges = np.flatnonzero(testable)
    sums = np.cumsum(known.commits())[edges]
    mass = np.diff(sums)
    order = np.argsort(-mass, kind="stable")[:NAMED]
    suspects = np.flatnonzero(np.diff(known.suspects, prepend=0))
    found = []
    for j in order:
        within = suspects[(suspects > edges[j]) & (suspects <= edges[j + 1])]
        if len(within):
            found.append(Range(int(within[0]), int(within[-1]), float(mass[j])))
    return tuple(found)


def step(evidence: Evidence, pending: Sequence[int] = (), most_runs: int = MOST_RUNS) -> Step:
    """Whether there is an answer, or else which kernel is run next.

    pending: kernels whose runs are under way; the next one tells most whichever way those end.
    """
    low, high = window(evidence)
    busy = [one - low for one in pending if low < one < high]
    found = _step(within(evidence, low, high), busy, most_runs)
    shares = np.zeros(evidence.last + 1)
    shares[low : high + 1] = found.shares
    return replace(
        found,
        shares=shares,
        ranges=tuple(
            Range(one.first + low, one.last + low, one.probability) for one in found.ranges
        ),
        run=found.run + low if found.word == "run" else -1,
    )


def _step(evidence: Evidence, pending: Sequence[int], most_runs: int) -> Step:
    """Of a row with one step."""
    known = posterior(evidence)
    shares = known.commits()
    best = ranges(evidence, known)
    if best[0].probability >= SURE:
        return Step("found", shares, best)
    if sum(map(len, evidence.figures.values())) >= most_runs:
        return Step("unsure", shares, best, why=f"{most_runs} runs were not enough")
    position, tells = _next(evidence, _parts(known, pending))
    if tells < ENOUGH and pending:
        position, tells = _next(evidence, _parts(known))
    if tells < ENOUGH:
        if (stretch := _stretch(evidence, known)) is not None:
            return Step("found", shares, (stretch,))
        # Runs of one kernel scatter without its offset: how large offsets are can still be learnt.
        position = _least_known(evidence, _parts(known))
        if len(evidence.figures[position]) >= LEARNT:
            return Step("unsure", shares, best, why="no further run would tell them apart")
    return Step("run", shares, best, position, tells)


def _stretch(evidence: Evidence, known: Posterior) -> Range | None:
    """The commits between two neighbouring kernels, if it is one of them and some do not run."""
    j = int(known.gaps.argmax())
    low, high = int(known.positions[j]), int(known.positions[j + 1])
    if known.gaps[j] < SURE or not any(low < one < high for one in evidence.untestable):
        return None
    suspects = np.flatnonzero(np.diff(known.suspects, prepend=0))
    within = suspects[(suspects > low) & (suspects <= high)]
    return Range(int(within[0]), int(within[-1]), float(known.gaps[j]))


def likely_next(evidence: Evidence, pending: Sequence[int]) -> list[int]:
    """The new kernels that are wanted after these runs, the most probable first."""
    low, high = window(evidence)
    part_of = within(evidence, low, high)
    busy = [one - low for one in pending if low < one < high]
    found = []
    for part in _parts(posterior(part_of), busy):
        position, _ = _next(part_of, [part])
        if position not in part_of.figures and position not in busy:
            found.append((part.mass, position + low))
    return [position for _, position in sorted(found, reverse=True)]


def _parts(known: Posterior, pending: Sequence[int] = ()) -> list[Expectation]:
    """What is expected if the step is between two of the kernels that are running now, each."""
    edges = sorted({0, *pending, known.last})
    parts = [Expectation(known, low, high) for low, high in pairwise(edges)]
    return [part for part in parts if part.mass > LIKELY]


def _next(evidence: Evidence, parts: Sequence[Expectation]) -> tuple[int, float]:
    """The commit whose kernel's run tells most, and what it is expected to tell.

    A kernel that is there is run again where that tells as much as a new one.
    """
    built = _neighbours(evidence, parts)
    new = sorted({one for part in parts for one in _candidates(evidence, part)})
    tells = np.sum([part.mass * part.tells([*built, *new]) for part in parts], axis=0)
    tells[len(built) :] *= [builds_there(evidence, one) for one in new]
    again = int(tells[: len(built)].argmax())
    best = int(tells.argmax())
    chosen = again if tells[again] >= AS_MUCH * tells[best] else best
    return [*built, *new][chosen], float(tells[chosen])


def _neighbours(evidence: Evidence, parts: Sequence[Expectation]) -> list[int]:
    """The tested kernels at the edges of what is likely, and the ends."""
    near = {0, evidence.last}
    for part in parts:
        near |= {int(one) for one in (*part.low, *part.high)}
    return sorted(one for one in near if one in evidence.figures)


def _least_known(evidence: Evidence, parts: Sequence[Expectation]) -> int:
    """The kernel with the fewest runs of those at the edges of what is likely."""
    near = _neighbours(evidence, parts)
    return min(near, key=lambda one: len(evidence.figures[one]))


def _candidates(evidence: Evidence, expected: Expectation) -> list[int]:
    """Commits that have no run yet, some of each gap that is likely."""
    wanted: set[float] = {expected.median()}
    for mass, low, high in zip(
        expected.weights.sum(axis=1), expected.low, expected.high, strict=True
    ):
        if mass > LIKELY and high - low > 1:
            wanted |= {low + part * (high - low) for part in (0.25, 0.5, 0.75)}
    found: set[int] = set()
    for one in wanted:
        found |= set(_testable_near(evidence, round(one)))
    return sorted(found)


def _testable_near(evidence: Evidence, position: int) -> list[int]:
    """The commit, or those on either side of it that may be run and were not yet."""
    found = []
    for way in (-1, 1):
        one = position
        reach = 0
        while 0 < one < evidence.last and not evidence.testable(one):
            one += way
            reach += 1
        # Away from the edge of a stretch, too: the farther, the more likely it builds.
        for away in (0, reach, 2 * reach, 4 * reach):
            other = one + way * away
            new = 0 < other < evidence.last and other not in evidence.figures
            if new and evidence.testable(other):
                found.append(other)
    return found
