# SPDX-License-Identifier: GPL-2.0-or-later
"""Simulates searches by bisection.search in which the commit that made the step is known.

A run's figure is 500 s, times the steps up to it, times its kernel's own offset, times a scatter;
offset and scatter are log-normal. All runs of a kernel have the same offset.
"""

import math
from dataclasses import dataclass, field

import numpy as np

from bisection.evidence import Evidence
from bisection.search import SURE, step

LEVEL_S = 500.0
ENDS = 5  # runs of each end; a verdict about the ends needs them anyway


@dataclass(frozen=True)
class Setting:
    """What is simulated. effect, second: factors; scatter, offset: sd of logarithms."""

    effect: float
    scatter: float
    offset: float = 0.0
    commits: int = 4096
    second: float = 1.0  # a second step, elsewhere
    broken: int = 0  # stretches of commits that do not build, one of them around the step
    longest: int = 64  # commits of such a stretch
    hangs: float = 0.0  # share of a bad kernel's runs that hang
    tails: bool = False  # the scatter is Student's t with three degrees of freedom


@dataclass
class Tally:
    """The results of the searches, as counts; runs, kernels: those of each search."""

    right: int = 0
    wrong: int = 0
    unsure: int = 0
    held: int = 0  # unsure, but the commits that are named with 95 % include the right one
    runs: list[int] = field(default_factory=list)
    kernels: list[int] = field(default_factory=list)


class Search:
    """One search."""

    def __init__(self, setting: Setting, rng: np.random.Generator) -> None:
        self._setting = setting
        self._rng = rng
        places = rng.choice(np.arange(1, setting.commits + 1), size=2, replace=False)
        steps = [(int(places[0]), setting.effect), (int(places[1]), setting.second)]
        self._steps = [(place, factor) for place, factor in steps if factor != 1]
        self._broken = self._stretches()
        self._offsets: dict[int, float] = {}
        self.figures: dict[int, list[float]] = {}
        self._untestable: set[int] = set()

    def _stretches(self) -> set[int]:
        last = self._setting.commits
        broken: set[int] = set()
        for number in range(self._setting.broken):
            length = int(self._rng.integers(1, self._setting.longest + 1))
            first = self._steps[0][0] - int(self._rng.integers(0, length))
            if number:
                first = int(self._rng.integers(1, last))
            broken |= set(range(max(1, first), min(last, first + length)))
        return broken

    def run(self, position: int) -> None:
        """Run that commit's kernel, if it builds."""
        if position in self._broken:
            self._untestable.add(position)
            return
        setting, rng = self._setting, self._rng
        offset = self._offsets.setdefault(position, setting.offset * rng.standard_normal())
        before = [factor for place, factor in self._steps if place <= position]
        noise = rng.standard_t(3) / math.sqrt(3) if setting.tails else rng.standard_normal()
        value = LEVEL_S * math.prod(before) * math.exp(offset + setting.scatter * noise)
        if before and rng.random() < setting.hangs:
            value = math.inf
        self.figures.setdefault(position, []).append(value)

    def go(self, tally: Tally) -> None:
        """Search until there is an answer."""
        last = self._setting.commits
        for _ in range(ENDS):
            self.run(0)
            self.run(last)
        while True:
            now = step(Evidence(last, self.figures, frozenset(self._untestable)))
            if now.word != "run":
                break
            self.run(now.run)
        tally.runs.append(sum(map(len, self.figures.values())))
        tally.kernels.append(len(self.figures))
        best = now.ranges[0]
        holds = [any(r.first <= place <= r.last for place, _ in self._steps) for r in now.ranges]
        if now.word == "found":
            tally.right += holds[0]
            tally.wrong += not holds[0]
            assert best.probability >= SURE
            return
        tally.unsure += 1
        sums = np.cumsum([part.probability for part in now.ranges])
        named = int(np.searchsorted(sums, 0.95)) + 1
        tally.held += any(holds[:named])


def simulate(setting: Setting, number: int, seed: int) -> Tally:
    """Do `number` searches."""
    rng = np.random.default_rng(seed)
    tally = Tally()
    for _ in range(number):
        Search(setting, rng).go(tally)
    return tally
