# SPDX-License-Identifier: GPL-2.0-or-later
"""The search: chooses which kernel to run next, and decides when there is an answer."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal

import numpy as np

from bisection.choice import AS_MUCH, LIKELY, Expectation, builds_there
from bisection.evidence import Evidence, Floats
from bisection.posterior import Posterior, posterior
from bisection.steps import window, within

SURE = 0.95  # probability
ENOUGH = 0.008  # nats: a run that tells less is not worth its time
MOST_RUNS = 150
LEARNT = 10  # runs of a kernel, after which another one tells little about its offset
NAMED = 20  # how many ranges are named, the most probable ones


@dataclass(frozen=True)
class Range:
    """Commits first..last, one of which made the step with this probability.

    If the range has several commits, only the last of them was run, and most are untestable.
    """

    first: int
    last: int
    probability: float


@dataclass(frozen=True)
class Step:
    """What the search does next, and what it knows.

    word: `found`: a range is sure; `unsure`: no run would tell enough, or there were too many runs;
    `run`: run the kernel at position `run`, which is expected to tell `tells` nats. shares: the
    probability of each commit, by its position, for the larger step if there are two.
    """

    word: Literal["run", "found", "unsure"]
    shares: Floats
    ranges: tuple[Range, ...]  # the most probable first
    run: int = -1
    tells: float = 0.0
    why: str = ""

    @property
    def left(self) -> int:
        """The number of commits, most probable first, that hold the step with probability SURE."""
        return int(np.searchsorted(np.cumsum(np.sort(self.shares)[::-1]), SURE)) + 1


def ranges(evidence: Evidence, known: Posterior) -> tuple[Range, ...]:
    """The ranges of commits that runs can tell apart, the most probable first."""
    testable = np.ones(evidence.last + 1, dtype=bool)
    testable[list(evidence.untestable)] = False
    edges = np.flatnonzero(testable)
    sums = np.cumsum(known.commits())[edges]
    mass = np.diff(sums)
    order = np.argsort(-mass, kind="stable")[:NAMED]
    suspects = np.flatnonzero(np.diff(known.suspects, prepend=0))
    likely = []
    for j in order:
        within = suspects[(suspects > edges[j]) & (suspects <= edges[j + 1])]
        if len(within):
            likely.append(Range(int(within[0]), int(within[-1]), float(mass[j])))
    return tuple(likely)


def step(evidence: Evidence, pending: Sequence[int] = (), most_runs: int = MOST_RUNS) -> Step:
    """Whether there is an answer, or else which kernel is run next.

    pending: kernels whose runs are under way; the next run is chosen to tell most however they end.
    """
    low, high = window(evidence)
    busy = [position - low for position in pending if low < position < high]
    inner = _step(within(evidence, low, high), busy, most_runs)
    shares = np.zeros(evidence.last + 1)
    shares[low : high + 1] = inner.shares
    return replace(
        inner,
        shares=shares,
        ranges=tuple(
            Range(part.first + low, part.last + low, part.probability) for part in inner.ranges
        ),
        run=inner.run + low if inner.word == "run" else -1,
    )


def _step(evidence: Evidence, pending: Sequence[int], most_runs: int) -> Step:
    """The next step of the search in a row with a single step."""
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
        # More runs of one kernel separate scatter from offset: they tell how large offsets are.
        position = _least_known(evidence, _parts(known))
        if len(evidence.figures[position]) >= LEARNT:
            return Step("unsure", shares, best, why="no further run would tell them apart")
    return Step("run", shares, best, position, tells)


def _stretch(evidence: Evidence, known: Posterior) -> Range | None:
    """The commits between two tested kernels that surely hold the step, if some are untestable."""
    j = int(known.gaps.argmax())
    low, high = int(known.positions[j]), int(known.positions[j + 1])
    if known.gaps[j] < SURE or not any(low < position < high for position in evidence.untestable):
        return None
    suspects = np.flatnonzero(np.diff(known.suspects, prepend=0))
    within = suspects[(suspects > low) & (suspects <= high)]
    return Range(int(within[0]), int(within[-1]), float(known.gaps[j]))


def likely_next(evidence: Evidence, pending: Sequence[int]) -> list[int]:
    """The positions of kernels to build that pending runs may require, most probable first."""
    low, high = window(evidence)
    part_of = within(evidence, low, high)
    busy = [position - low for position in pending if low < position < high]
    wanted = []
    for part in _parts(posterior(part_of), busy):
        position, _ = _next(part_of, [part])
        if position not in part_of.figures and position not in busy:
            wanted.append((part.mass, position + low))
    return [position for _, position in sorted(wanted, reverse=True)]


def _parts(known: Posterior, pending: Sequence[int] = ()) -> list[Expectation]:
    """The expectations for each place of the step between neighbours of the pending kernels."""
    edges = sorted({0, *pending, known.last})
    parts = [Expectation(known, low, high) for low, high in pairwise(edges)]
    return [part for part in parts if part.mass > LIKELY]


def _next(evidence: Evidence, parts: Sequence[Expectation]) -> tuple[int, float]:
    """The position whose kernel's run is expected to tell most, and how much, in nats.

    A tested kernel is run again if that tells about as much as a new kernel.
    """
    built = _neighbours(evidence, parts)
    new = sorted({position for part in parts for position in _candidates(evidence, part)})
    tells = np.sum([part.mass * part.tells([*built, *new]) for part in parts], axis=0)
    tells[len(built) :] *= [builds_there(evidence, position) for position in new]
    again = int(tells[: len(built)].argmax())
    best = int(tells.argmax())
    chosen = again if tells[again] >= AS_MUCH * tells[best] else best
    return [*built, *new][chosen], float(tells[chosen])


def _neighbours(evidence: Evidence, parts: Sequence[Expectation]) -> list[int]:
    """The positions of the tested kernels at the edges of the likely gaps, and the ends."""
    near = {0, evidence.last}
    for part in parts:
        near |= {int(position) for position in (*part.low, *part.high)}
    return sorted(position for position in near if position in evidence.figures)


def _least_known(evidence: Evidence, parts: Sequence[Expectation]) -> int:
    """The position with the fewest runs among the kernels at the edges of the likely gaps."""
    near = _neighbours(evidence, parts)
    return min(near, key=lambda position: len(evidence.figures[position]))


def _candidates(evidence: Evidence, expected: Expectation) -> list[int]:
    """Positions without a run, some in each likely gap."""
    wanted: set[float] = {expected.median()}
    for mass, low, high in zip(
        expected.weights.sum(axis=1), expected.low, expected.high, strict=True
    ):
        if mass > LIKELY and high - low > 1:
            wanted |= {low + part * (high - low) for part in (0.25, 0.5, 0.75)}
    testable: set[int] = set()
    for position in wanted:
        testable |= set(_testable_near(evidence, round(position)))
    return sorted(testable)


def _testable_near(evidence: Evidence, position: int) -> list[int]:
    """The position itself, or positions on either side of it that may be run and were not yet."""
    testable = []
    for way in (-1, 1):
        edge = position
        reach = 0
        while 0 < edge < evidence.last and not evidence.testable(edge):
            edge += way
            reach += 1
        # Farther from the edge of an untestable stretch a kernel is more likely to build.
        for away in (0, reach, 2 * reach, 4 * reach):
            other = edge + way * away
            new = 0 < other < evidence.last and other not in evidence.figures
            if new and evidence.testable(other):
                testable.append(other)
    return testable
