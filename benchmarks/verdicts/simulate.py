# SPDX-License-Identifier: GPL-2.0-or-later
"""Draws campaigns in which the truth is known from real runs, and judges them.

A simulated run is a real run of the variant, drawn with replacement, whose stalled seconds are made
a little longer or shorter: the smoothed bootstrap with shrinkage (Silverman and Young, "The
bootstrap: to smooth or not to smooth?", Biometrika 1987) of the logarithm of their sum. So the
logarithms keep their mean and their variance, while no two runs are equal.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from analysis.figures.metrics import PRIMARY, lost, whole
from analysis.figures.stalls import Stall, stalls
from analysis.reading.latency_log import Floats
from analysis.reading.load import Campaign, Run
from analysis.verdicts.judge import Pair, judge_families, judge_spread
from analysis.verdicts.verdict import Comparison, Sample

FEWEST = 2  # least number of a variant's real runs to draw campaigns from
LEAST_S = 1.0  # least stalled seconds of a run whose logarithm is used


@dataclass(frozen=True)
class Pool:
    """The stalled seconds of one variant's real runs, as an array of runs, or of runs x causes."""

    name: str
    real: Floats

    @property
    def totals(self) -> Floats:
        """The stalled seconds of each run, of all causes together."""
        sums: Floats = self.real if self.real.ndim == 1 else self.real.sum(axis=1)
        return sums

    def draw(self, rng: np.random.Generator, runs: int) -> Floats:
        """The stalled seconds of `runs` simulated runs."""
        logs = np.log(self.totals)
        number, spread = len(logs), logs.std(ddof=1)
        width = number**-0.2  # of the normal kernel, in standard deviations
        chosen = rng.integers(number, size=runs)
        moved = logs[chosen] - logs.mean() + width * spread * rng.standard_normal(runs)
        # Shrink, so that the drawn runs have the variance of the real ones.
        moved /= np.sqrt((number - 1) / number + width**2)
        longer = np.exp(moved + logs.mean() - logs[chosen])
        if self.real.ndim > 1:
            longer = longer[:, np.newaxis]
        drawn: Floats = self.real[chosen] * longer
        return drawn


def all_stalls(run: Run) -> list[tuple[Stall, float]]:
    """The stalls of the subjects with their seconds."""
    return [(stall, stall.length) for stream in run.subjects for stall in stalls(stream)]


def pools(
    campaigns: list[Campaign],
    stalls_of: Callable[[Run], Sequence[tuple[Stall, float | Floats]] | None] = all_stalls,
    causes: int = 0,
) -> list[Pool]:
    """A pool for each variant with enough complete runs, all of which stalled.

    stalls_of: returns a run's stalls, each with its seconds by cause (an array of `causes` values)
    or in all; None: not known.
    """
    usable = []
    for campaign in campaigns:
        for variant, runs in campaign.variants().items():
            good = [run for run in runs if whole(run) and not lost(run)]
            known = [timed for run in good if (timed := stalls_of(run)) is not None]
            none = np.zeros(causes) if causes else 0.0
            sums = [sum((seconds for _, seconds in timed), start=none) for timed in known]
            if len(sums) >= FEWEST and min(np.sum(total) for total in sums) >= LEAST_S:
                usable.append(Pool(f"{campaign.path.resolve().name}/{variant}", np.array(sums)))
    return usable


@dataclass(frozen=True)
class Setting:
    """What is simulated: each variant's stalls are `effect` times as long as the baseline's."""

    runs: tuple[int, ...]  # of each variant; several numbers: the looks of --stop-when-sure
    variants: int = 1  # beside the baseline
    effect: float = 1.0
    calm: float = 1.0  # factor of all runs' deviations from the pool's mean, on a log scale
    scatter: float = 1.0  # the same factor for the variants only
    baseline_runs: int = 0  # if the baseline has more


@dataclass
class Tally:
    """Shares of campaigns in which at least one comparison had the verdict at any of its looks."""

    regressed: float = 0.0
    improved: float = 0.0
    differs: float = 0.0  # at least one of these two
    equivalent: float = 0.0
    sure: float = 0.0  # share in which every comparison had a verdict in the end
    runs: float = 0.0  # mean number of runs of each variant
    covered: float = 0.0  # share of the intervals that contain the true ratio
    regressed_comparisons: float = 0.0  # share of all comparisons, at any of their looks
    contradicted: int = 0  # comparisons whose verdict and interval contradict each other


def campaigns(pool: list[Pool], setting: Setting, number: int, seed: int) -> list[list[Floats]]:
    """For each campaign the seconds of the baseline and of each variant, at the last look."""
    rng = np.random.default_rng(seed)
    most = setting.runs[-1]
    drawn = []
    for _ in range(number):
        source = pool[rng.integers(len(pool))]
        sizes = [max(most, setting.baseline_runs), *[most] * setting.variants]
        groups = [source.draw(rng, size) for size in sizes]
        groups = [_calmed(group, source.real.mean(), setting.calm) for group in groups]
        for i in range(1, len(groups)):
            groups[i] = setting.effect * _calmed(groups[i], source.real.mean(), setting.scatter)
        drawn.append(groups)
    return drawn


def _calmed(values: Floats, centre: float, by: float) -> Floats:
    """The values moved towards the centre (by < 1) or away from it (by > 1), on a log scale."""
    return values if by == 1 else centre * (np.maximum(values, 1) / centre) ** by


def simulate(drawn: list[list[Floats]], setting: Setting, *, alpha: float, margin: float) -> Tally:
    """The verdicts of `judge` on these campaigns, look by look until all are sure; the shares."""
    level = alpha / len(setting.runs)
    tally = Tally()
    going = list(range(len(drawn)))
    # By verdict: campaign and variant of each comparison that had it at any look.
    seen: dict[str, set[tuple[int, str]]] = {
        "regressed": set(),
        "improved": set(),
        "equivalent": set(),
    }
    covered: list[bool] = []
    for look, runs in enumerate(setting.runs):
        base_runs = max(runs, setting.baseline_runs)
        families = [
            _pairs([base[:base_runs], *(group[:runs] for group in groups)])
            for base, *groups in (drawn[i] for i in going)
        ]
        undecided = []
        for i, family in zip(
            going, judge_families(families, level=level, margin=margin), strict=True
        ):
            for compared in family:
                if compared.verdict in seen:
                    seen[compared.verdict].add((i, compared.variant))
                if compared.low is not None and compared.high is not None:
                    covered.append(compared.low <= setting.effect <= compared.high)
                tally.contradicted += contradicts(compared)
            sure = all(compared.verdict != "undecided" for compared in family)
            tally.sure += sure
            if sure or look == len(setting.runs) - 1:
                tally.runs += runs
            else:
                undecided.append(i)
        going = undecided
    number = len(drawn)

    def share(*verdicts: str) -> float:
        return len({i for verdict in verdicts for i, _ in seen[verdict]}) / number

    return Tally(
        regressed=share("regressed"),
        improved=share("improved"),
        differs=share("regressed", "improved"),
        equivalent=share("equivalent"),
        sure=tally.sure / number,
        runs=tally.runs / number,
        covered=sum(covered) / max(1, len(covered)),
        regressed_comparisons=len(seen["regressed"]) / (number * setting.variants),
        contradicted=tally.contradicted,
    )


def contradicts(compared: Comparison) -> bool:
    """Whether the interval contains a ratio that the verdict excludes, or the other way round."""
    low, high = compared.low or 0.0, math.inf if compared.high is None else compared.high
    if compared.low is None and compared.high is None:
        return compared.verdict == "equivalent"
    inside = 1 / (1 + compared.margin) <= low and high <= 1 + compared.margin
    if compared.doubt:
        return compared.verdict != "undecided" or low < 1 < high
    inside = inside and compared.limit_s is None
    expected = {
        "regressed": low >= 1 and not inside,
        "improved": high <= 1 and not inside,
        "equivalent": inside,
        "undecided": low <= 1 <= high and not inside,
    }
    return not expected[compared.verdict]


def spreads(drawn: list[list[Floats]], *, alpha: float) -> Tally:
    """The shares of the verdicts on the spread; each campaign is a family."""
    tally = Tally()
    for groups in drawn:
        words = {compared.verdict for compared in _spread(groups, alpha)}
        tally.regressed += "regressed" in words
        tally.improved += "improved" in words
        tally.differs += bool(words & {"regressed", "improved"})
    number = len(drawn)
    return Tally(tally.regressed / number, tally.improved / number, tally.differs / number)


def _spread(groups: list[Floats], alpha: float) -> list[Comparison]:
    return judge_spread(_pairs(groups), level=alpha)


def _pairs(groups: list[Floats]) -> list[Pair]:
    base, *others = (Sample(tuple(group.tolist())) for group in groups)
    return [Pair(PRIMARY, str(i), base, other) for i, other in enumerate(others)]
