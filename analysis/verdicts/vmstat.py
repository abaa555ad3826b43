# SPDX-License-Identifier: GPL-2.0-or-later
"""What the kernel did differently: the counters of /proc/vmstat, a figure for each run, by ranks.

Exploratory: there are hundreds of counters and few runs, and a kernel that does more of one thing
does more of many. The table states what so many runs can show (docs/explain/verdicts.md).
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

# Counts added to both means before they are divided to rank the counters, because 3 events against
# none are no large difference. A hundred pages are 0.4 MiB.
FLOOR = 100.0
LEAST = 1.1  # a smaller effect (ratio) is not shown, however significant it is
Figures = Mapping[Path, Mapping[str, float | None]]  # by the run's folder; see figures.vmstat


@dataclass(frozen=True)
class Difference:
    """A counter of a variant against the baseline's; both samples have values."""

    counter: str
    base: Sample
    sample: Sample
    delta: float  # Cliff's: +1 if every run has more than every run of the baseline
    p: float
    p_adjusted: float  # Holm's, over the counters of this variant that are tested

    @property
    def separate(self) -> bool:
        """Whether the ranges of the two samples do not overlap."""
        return abs(self.delta) == 1

    @property
    def smallest(self) -> float:
        """The smallest p that these numbers of runs could give."""
        return smallest_p(rows_of(self.sample, self.base)) or 1.0

    @property
    def ratio(self) -> float | None:
        """The variant's mean to the baseline's; None if the baseline's is 0."""
        return (self.sample.mean or 0.0) / self.base.mean if self.base.mean else None

    @property
    def effect(self) -> float:
        """The ratio of the means with FLOOR added to both, by which counters are ranked."""
        return ((self.sample.mean or 0.0) + FLOOR) / ((self.base.mean or 0.0) + FLOOR)


@dataclass(frozen=True)
class Differences:
    """The counters of a variant: those that are separate first, then by effect, largest first."""

    tested: list[Difference] = field(default_factory=list)
    only_base: list[str] = field(default_factory=list)  # counters that the variant lacks
    only_here: list[str] = field(default_factory=list)  # counters that the baseline lacks
    went_back: list[str] = field(default_factory=list)  # in at least one run of the two
    runs: tuple[int, int] = (0, 0)  # with counters, of the variant and of the baseline
    level: float = 0.05

    @cached_property
    def separate(self) -> list[Difference]:
        """The counters whose ranges do not overlap."""
        return [difference for difference in self.tested if difference.separate]

    @cached_property
    def notable(self) -> list[Difference]:
        """The counters that reports show: large effects that are separate or have a small p."""
        return [
            difference
            for difference in self.tested
            if (difference.separate or difference.p <= self.level)
            and not 1 / LEAST < difference.effect < LEAST
        ]

    @property
    def established(self) -> int:
        """The number of counters that reach the level after Holm's correction."""
        return sum(difference.p_adjusted <= self.level for difference in self.tested)

    @property
    def by_chance(self) -> float:
        """How many counters chance would separate, on average and at most, if nothing differed.

        All divisions of the runs are equally likely; two of them separate the groups.
        """
        return math.fsum(difference.smallest for difference in self.tested)

    @property
    def too_few(self) -> bool:
        """Whether these numbers of runs cannot reach the level, whatever they count."""
        smallest = min((difference.smallest for difference in self.tested), default=1.0)
        return smallest * len(self.tested) > self.level


@dataclass(frozen=True)
class KernelCounters:
    """The counters of a campaign; `samples`: by counter (in the kernels' order), then variant."""

    figures: Figures = field(default_factory=dict)
    samples: dict[str, dict[str, Sample]] = field(default_factory=dict)
    differences: dict[str, Differences] = field(default_factory=dict)  # without the baseline

    @cached_property
    def alike(self) -> dict[str, float]:
        """The counters with the same figure in all runs, and that figure, which is usually 0."""
        constants: dict[str, float] = {}
        if len(self.figures) < 2:
            return constants
        for counter, of_variants in self.samples.items():
            values = {value for sample in of_variants.values() for value in sample.values}
            runs = sum(len(sample.values) for sample in of_variants.values())
            if len(values) == 1 and runs == len(self.figures):
                constants[counter] = values.pop()
        return constants


def collect(campaign: Campaign) -> dict[Path, dict[str, float | None]]:
    """The figures of each run that was done; the counts of other runs are incomplete."""
    runs = [run for run in campaign.runs if whole(run)]
    figures = done_to_each(runs, vmstat.figures)
    return {run.path: of_run for run, of_run in zip(runs, figures, strict=True) if of_run}


def kernel_counters(
    by_variant: Mapping[str, list[Run]], variants: Sequence[str], found: Figures, level: float
) -> KernelCounters:
    """The counters of the runs of `variants`, the baseline first; `found`: from `collect`."""
    runs = {variant: [run for run in by_variant[variant] if counted(run)] for variant in variants}
    by_run = {run.path: found[run.path] for of in runs.values() for run in of if run.path in found}
    names = dict.fromkeys(name for figures in by_run.values() for name in figures)
    samples = {
        counter: {variant: _sample(counter, runs[variant], by_run) for variant in variants}
        for counter in names
    }
    back = {
        variant: {
            name
            for run in runs[variant]
            for name, v in by_run.get(run.path, {}).items()
            if v is None
        }
        for variant in variants
    }
    sizes = {variant: sum(run.path in by_run for run in runs[variant]) for variant in variants}
    base = variants[0]
    differences: dict[str, Differences] = {}
    for variant in variants[1:]:
        known = sizes[variant] and sizes[base]
        of_pair = (
            _differences(samples, base, variant, back[base] | back[variant])
            if known
            else Differences()
        )
        differences[variant] = replace(of_pair, runs=(sizes[variant], sizes[base]), level=level)
    return KernelCounters(by_run, samples, differences)


def _sample(counter: str, runs: list[Run], told: Figures) -> Sample:
    return Sample.over(runs, (told.get(run.path, {}).get(counter) for run in runs))


def _differences(
    samples: Mapping[str, Mapping[str, Sample]], base: str, variant: str, back: set[str]
) -> Differences:
    pairs = {counter: (of[base], of[variant]) for counter, of in samples.items()}
    # A counter with the same figure in all runs of both cannot differ, however they are divided:
    # leaving it out favours no difference.
    tested = {
        counter: (before, after)
        for counter, (before, after) in pairs.items()
        if before.values and after.values and len({*before.values, *after.values}) > 1
    }
    rows = [rows_of(after, before) for before, after in tested.values()]
    p = by_size(rows, lambda one, other, *more: permutation_p(one, other, "two-sided", *more))
    delta = by_size(rows, cliffs_delta)
    adjusted = holm(np.array(p))
    differences = [
        Difference(counter, *pair, *map(float, figures))
        for (counter, pair), *figures in zip(tested.items(), delta, p, adjusted, strict=True)
    ]
    differences.sort(key=lambda one: (not one.separate, -abs(math.log(one.effect)), one.counter))
    return Differences(
        differences,
        [name for name, (a, b) in pairs.items() if a.values and not b.values and name not in back],
        [name for name, (a, b) in pairs.items() if b.values and not a.values and name not in back],
        [name for name in pairs if name in back],
    )
