# SPDX-License-Identifier: GPL-2.0-or-later
"""What the kernel did differently: each counter of /proc/vmstat, one figure a run, by ranks.

Exploratory: hundreds of counters, few runs, and a kernel that does more of one thing does more of
many. What can be concluded from so many runs is said with the table (docs/explain/verdicts.md).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import numpy as np

from analysis.figures import vmstat
from analysis.figures.metrics import counted, whole
from analysis.reading.load import Campaign, Run
from analysis.reading.processes import done_to_each
from analysis.verdicts.judge import by_size, rows_of, smallest_p
from analysis.verdicts.statistics import cliffs_delta, holm, permutation_p
from analysis.verdicts.verdict import Sample

# Added to both means before they are divided, to rank counters by: 3 events against none are no
# large difference. A hundred pages are 0.4 MiB.
FLOOR = 100.0
LEAST = 1.1  # a smaller effect is not shown, as surely as it may be there
Figures = Mapping[Path, Mapping[str, float | None]]  # by the run's folder; see figures.vmstat


@dataclass(frozen=True)
class Difference:
    """One counter of one variant against the baseline's; both samples have values."""

    counter: str
    base: Sample
    sample: Sample
    delta: float  # Cliff's: +1 if every run has more than every one of the baseline
    p: float
    p_adjusted: float  # Holm's, over the counters of this variant that are tested

    @property
    def separate(self) -> bool:
        """Whether no run of one lies within the range of the other's runs."""
        return abs(self.delta) == 1

    @property
    def smallest(self) -> float:
        """The smallest p that so many runs could give."""
        return smallest_p(rows_of(self.sample, self.base)) or 1.0

    @property
    def ratio(self) -> float | None:
        """Of the means; None if the baseline's is 0."""
        return (self.sample.mean or 0.0) / self.base.mean if self.base.mean else None

    @property
    def effect(self) -> float:
        """The ratio of the means with FLOOR added to both, what they are ranked by."""
        return ((self.sample.mean or 0.0) + FLOOR) / ((self.base.mean or 0.0) + FLOOR)


@dataclass(frozen=True)
class Differences:
    """The counters of one variant: separate ones first, and of these the largest effect first."""

    tested: list[Difference] = field(default_factory=list)
    only_base: list[str] = field(default_factory=list)  # counters that the other's kernel lacks
    only_here: list[str] = field(default_factory=list)
    went_back: list[str] = field(default_factory=list)  # in one run at least, of either
    runs: tuple[int, int] = (0, 0)  # that have counters, of the variant and of the baseline
    level: float = 0.05

    @cached_property
    def separate(self) -> list[Difference]:
        """The counters whose ranges do not overlap."""
        return [one for one in self.tested if one.separate]

    @cached_property
    def told(self) -> list[Difference]:
        """Those that are worth a reader's time."""
        return [
            one
            for one in self.tested
            if (one.separate or one.p <= self.level) and not 1 / LEAST < one.effect < LEAST
        ]

    @property
    def established(self) -> int:
        """How many reach the level after Holm's correction."""
        return sum(one.p_adjusted <= self.level for one in self.tested)

    @property
    def by_chance(self) -> float:
        """How many would be separate on the average if the kernels did the same, at most.

        A division of the runs is as likely as any other; two of them keep both groups apart.
        """
        return math.fsum(one.smallest for one in self.tested)

    @property
    def too_few(self) -> bool:
        """Whether so many runs cannot reach the level, whatever they count."""
        smallest = min((one.smallest for one in self.tested), default=1.0)
        return smallest * len(self.tested) > self.level


@dataclass(frozen=True)
class KernelCounters:
    """The counters of a campaign; `samples`: counter (as the kernels order them), variant."""

    figures: Figures = field(default_factory=dict)
    samples: dict[str, dict[str, Sample]] = field(default_factory=dict)
    differences: dict[str, Differences] = field(default_factory=dict)  # not of the baseline

    @cached_property
    def alike(self) -> dict[str, float]:
        """Counters that have one figure in all of several runs: it, which is 0 as a rule."""
        found: dict[str, float] = {}
        if len(self.figures) < 2:
            return found
        for counter, of_variants in self.samples.items():
            values = {value for sample in of_variants.values() for value in sample.values}
            runs = sum(len(sample.values) for sample in of_variants.values())
            if len(values) == 1 and runs == len(self.figures):
                found[counter] = values.pop()
        return found


def collect(campaign: Campaign) -> dict[Path, dict[str, float | None]]:
    """The figures of each run that was done: what another one counted is no whole run's."""
    runs = [run for run in campaign.runs if whole(run)]
    found = done_to_each(runs, vmstat.figures)
    return {run.path: one for run, one in zip(runs, found, strict=True) if one}


def kernel_counters(
    by_variant: Mapping[str, list[Run]], variants: Sequence[str], found: Figures, level: float
) -> KernelCounters:
    """The runs of `variants`, the baseline first, by what `collect` found in them."""
    runs = {one: [run for run in by_variant[one] if counted(run)] for one in variants}
    told = {run.path: found[run.path] for of in runs.values() for run in of if run.path in found}
    names = dict.fromkeys(name for figures in told.values() for name in figures)
    samples = {
        counter: {one: _sample(counter, runs[one], told) for one in variants} for counter in names
    }
    back = {
        one: {name for run in runs[one] for name, v in told.get(run.path, {}).items() if v is None}
        for one in variants
    }
    sizes = {one: sum(run.path in told for run in runs[one]) for one in variants}
    base = variants[0]
    differences: dict[str, Differences] = {}
    for one in variants[1:]:
        known = sizes[one] and sizes[base]
        of_pair = (
            _differences(samples, base, one, back[base] | back[one]) if known else Differences()
        )
        differences[one] = replace(of_pair, runs=(sizes[one], sizes[base]), level=level)
    return KernelCounters(told, samples, differences)


def _sample(counter: str, runs: list[Run], told: Figures) -> Sample:
    return Sample.over(runs, (told.get(run.path, {}).get(counter) for run in runs))


def _differences(
    samples: Mapping[str, Mapping[str, Sample]], base: str, variant: str, back: set[str]
) -> Differences:
    pairs = {counter: (of[base], of[variant]) for counter, of in samples.items()}
    # A counter that all runs of both agree in cannot differ, however they are divided: to leave it
    # out favours no difference.
    tested = {
        counter: (before, after)
        for counter, (before, after) in pairs.items()
        if before.values and after.values and len({*before.values, *after.values}) > 1
    }
    rows = [rows_of(after, before) for before, after in tested.values()]
    p = by_size(rows, lambda one, other, *more: permutation_p(one, other, "two-sided", *more))
    delta = by_size(rows, cliffs_delta)
    adjusted = holm(np.array(p))
    found = [
        Difference(counter, *pair, *map(float, figures))
        for (counter, pair), *figures in zip(tested.items(), delta, p, adjusted, strict=True)
    ]
    found.sort(key=lambda one: (not one.separate, -abs(math.log(one.effect)), one.counter))
    return Differences(
        found,
        [name for name, (a, b) in pairs.items() if a.values and not b.values and name not in back],
        [name for name, (a, b) in pairs.items() if b.values and not a.values and name not in back],
        [name for name in pairs if name in back],
    )
