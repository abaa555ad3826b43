# SPDX-License-Identifier: GPL-2.0-or-later
"""The search: which kernel to run next, and when there is an answer."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from bisection.choice import AS_MUCH, LIKELY, Expectation, builds_there
from bisection.evidence import Evidence
from bisection.posterior import Posterior, posterior

SURE = 0.95
ENOUGH = 0.008  # nats: a run that tells less is not worth its time
MOST_RUNS = 150
LEARNT = 6  # runs of a kernel, from which on one more says little of its own offset
NAMED = 20  # ranges that are named, the most probable


@dataclass(frozen=True)
class Range:
    """Commits first..last, of which one made the step with this probability.

    All but the last are untestable; where first is last it is one commit.
    """

    first: int
    last: int
    probability: float


@dataclass(frozen=True)
class Step:
    """What the search does next, and what it knows.

    found: a range is sure; unsure: no run would tell enough, or there were too many; else `run`,
    the position of the kernel to run, and what a run of it is expected to tell.
    """

    word: Literal["run", "found", "unsure"]
    known: Posterior
    ranges: tuple[Range, ...]  # the most probable first
    run: int = -1
    tells: float = 0.0
    why: str = ""


def ranges(evidence: Evidence, known: Posterior) -> tuple[Range, ...]:
    """What could be told apart at all, the most probable first."""
    testable = np.ones(evidence.last + 1, dtype=bool)
    testable[list(evidence.untestable)] = False
    edges = np.flatnonzero(testable)
    sums = np.cumsum(known.commits())[edges]
    mass = np.diff(sums)
    order = np.argsort(-mass, kind="stable")[:NAMED]
    return tuple(Range(int(edges[j]) + 1, int(edges[j + 1]), float(mass[j])) for j in order)


def step(evidence: Evidence, most_runs: int = MOST_RUNS) -> Step:
    """Whether there is an answer, or else which kernel is run next."""
    known = posterior(evidence)
    best = ranges(evidence, known)
    if best[0].probability >= SURE:
        return Step("found", known, best)
    if sum(map(len, evidence.figures.values())) >= most_runs:
        return Step("unsure", known, best, why=f"{most_runs} runs were not enough")
    position, tells = next_run(evidence, Expectation(known))
    if tells < ENOUGH:
        # Runs of one kernel scatter without its offset: how large offsets are can still be learnt.
        position = _least_known(evidence, Expectation(known))
        if len(evidence.figures[position]) >= LEARNT:
            return Step("unsure", known, best, why="no further run would tell them apart")
    return Step("run", known, best, position, tells)


def next_run(evidence: Evidence, expected: Expectation) -> tuple[int, float]:
    """The commit whose kernel's run tells most, and what it is expected to tell.

    A kernel that is there is run again where that tells as much as a new one.
    """
    built, new = _neighbours(evidence, expected), _candidates(evidence, expected)
    tells = expected.tells([*built, *new])
    tells[len(built) :] *= [builds_there(evidence, one) for one in new]
    again = int(tells[: len(built)].argmax())
    best = int(tells.argmax())
    chosen = again if tells[again] >= AS_MUCH * tells[best] else best
    return [*built, *new][chosen], float(tells[chosen])


def likely_next(evidence: Evidence, running: int, known: Posterior) -> list[int]:
    """Which new kernels are wanted after a run of that commit, whichever way it ends."""
    found = []
    for first, after in ((0, running), (running, known.last)):
        expected = Expectation(known, first, after)
        if expected.mass > LIKELY and len(expected.gaps):
            position, _ = next_run(evidence, expected)
            if position not in evidence.figures and position != running:
                found.append((expected.mass, position))
    return [position for _, position in sorted(found, reverse=True)]


def _neighbours(evidence: Evidence, expected: Expectation) -> list[int]:
    """The tested kernels at the edges of what is likely, and the ends."""
    near = {0, evidence.last}
    for low, high in zip(expected.low, expected.high, strict=True):
        near |= {int(low), int(high)}
    return sorted(one for one in near if one in evidence.figures)


def _least_known(evidence: Evidence, expected: Expectation) -> int:
    """The kernel with the fewest runs of those at the edges of what is likely."""
    near = _neighbours(evidence, expected)
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
        found |= set(_testable_near(evidence, int(round(one))))
    return sorted(found)


def _testable_near(evidence: Evidence, position: int) -> list[int]:
    """The commit, or those on either side of it that may be run and were not yet."""
    found = []
    for way in (-1, 1):
        one = position
        reach = 0
        while 0 < one < evidence.last and one in evidence.untestable:
            one += way
            reach += 1
        # Away from the edge of a stretch, too: the farther, the more likely it builds.
        for away in (0, reach, 2 * reach, 4 * reach):
            other = one + way * away
            if evidence.testable(other) and other not in evidence.figures:
                if 0 < other < evidence.last:
                    found.append(other)
    return found
