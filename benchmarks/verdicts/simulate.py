# SPDX-License-Identifier: GPL-2.0-or-later
"""Campaigns in which the truth is known, drawn from real runs.

A simulated run is a real run of the variant, drawn with replacement, all of whose stalled seconds
are a little longer or shorter: the smoothed bootstrap with shrinkage (Silverman and Young, "The
bootstrap: to smooth or not to smooth?", Biometrika 1987) of the logarithm of their sum. So the
logarithms keep their mean and their variance, while no two runs are alike.
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

FEWEST = 2  # real runs of a variant from which campaigns are drawn
LEAST_S = 1.0  # a run that stalled for less has no logarithm worth the name


@dataclass(frozen=True)
class Pool:
    """The real runs of one variant: runs, or runs x causes; stalled seconds."""

    name: str
    real: Floats

    @property
    def totals(self) -> Floats:
        """Stalled seconds of each run, by all causes."""
        found: Floats = self.real if self.real.ndim == 1 else self.real.sum(axis=1)
        return found

    def draw(self, rng: np.random.Generator, runs: int) -> Floats:
        """Stalled seconds of simulated runs."""
        logs = np.log(self.totals)
        number, spread = len(logs), logs.std(ddof=1)
        width = number**-0.2  # of the normal kernel, in standard deviations
        chosen = rng.integers(number, size=runs)
        moved = logs[chosen] - logs.mean() + width * spread * rng.standard_normal(runs)
        # The drawn ones' variance is then that of the real ones.
        moved /= np.sqrt((number - 1) / number + width**2)
        longer = np.exp(moved + logs.mean() - logs[chosen])
        if self.real.ndim > 1:
            longer = longer[:, np.newaxis]
        drawn: Floats = self.real[chosen] * longer
        return drawn


def all_stalls(run: Run) -> list[tuple[Stall, float]]:
    """The stalls of the subjects, each with its seconds."""
    return [(stall, stall.length) for stream in run.subjects for stall in stalls(stream)]


def pools(
    campaigns: list[Campaign],
    told: Callable[[Run], Sequence[tuple[Stall, float | Floats]] | None] = all_stalls,
    causes: int = 0,
) -> list[Pool]:
    """One for each variant with enough runs that ended and are all known, each of which stalled.

    told: a run's stalls, each with the seconds that are drawn (of so many causes, or their sum);
    None: not known.
    """
    found = []
    for campaign in campaigns:
        for variant, runs in campaign.variants().items():
            good = [run for run in runs if whole(run) and not lost(run)]
            known = [each for run in good if (each := told(run)) is not None]
            none = np.zeros(causes) if causes else 0.0
            sums = [sum((seconds for _, seconds in each), start=none) for each in known]
            if len(sums) >= FEWEST and min(np.sum(one) for one in sums) >= LEAST_S:
                found.append(Pool(f"{campaign.path.resolve().name}/{variant}", np.array(sums)))
    return found


@dataclass(frozen=True)
class Setting:
    """What is simulated: each variant's stalls are `effect` times as long as the baseline's."""

    runs: tuple[int, ...]  # of each variant; several: the looks of --stop-when-sure
    variants: int = 1  # beside the baseline
    effect: float = 1.0
    calm: float = 1.0  # all runs' deviations from the pool's mean, on a log scale, times this
    scatter: float = 1.0  # the same of the variants only


@dataclass
class Tally:
    """Share of campaigns in which at least one comparison had the verdict, at any of its looks."""

    regressed: float = 0.0
    improved: float = 0.0
    differs: float = 0.0  # at least one of these two
    equivalent: float = 0.0
    sure: float = 0.0  # every comparison had a verdict in the end
    runs: float = 0.0  # of each variant, on the average
    covered: float = 0.0  # of the comparisons with an interval: it holds the true ratio
    contradicted: int = 0  # comparisons whose verdict and interval say different things


def campaigns(pool: list[Pool], setting: Setting, number: int, seed: int) -> list[list[Floats]]:
    """For each campaign the values of the baseline and of each variant, at the last look."""
    rng = np.random.default_rng(seed)
    most = setting.runs[-1]
    found = []
    for _ in range(number):
        one = pool[rng.integers(len(pool))]
        groups = [one.draw(rng, most) for _ in range(1 + setting.variants)]
        groups = [_calmed(group, one.real.mean(), setting.calm) for group in groups]
        for i in range(1, len(groups)):
            groups[i] = setting.effect * _calmed(groups[i], one.real.mean(), setting.scatter)
        found.append(groups)
    return found


def _calmed(values: Floats, centre: float, by: float) -> Floats:
    """The values nearer to (by < 1) or farther from the centre; unchanged with 1."""
    return values if by == 1 else centre * (np.maximum(values, 1) / centre) ** by


def simulate(drawn: list[list[Floats]], setting: Setting, *, alpha: float, margin: float) -> Tally:
    """The verdicts of `judge` on these campaigns, look by look until all are sure."""
    level = alpha / len(setting.runs)
    tally = Tally()
    going = list(range(len(drawn)))
    seen: dict[str, set[int]] = {"regressed": set(), "improved": set(), "equivalent": set()}
    covered: list[bool] = []
    for look, runs in enumerate(setting.runs):
        families = [_pairs([group[:runs] for group in drawn[i]]) for i in going]
        undecided = []
        for i, family in zip(
            going, judge_families(families, level=level, margin=margin), strict=True
        ):
            for one in family:
                if one.verdict in seen:
                    seen[one.verdict].add(i)
                if one.low is not None and one.high is not None:
                    covered.append(one.low <= setting.effect <= one.high)
                tally.contradicted += contradicts(one)
            sure = all(one.verdict != "undecided" for one in family)
            tally.sure += sure
            if sure or look == len(setting.runs) - 1:
                tally.runs += runs
            else:
                undecided.append(i)
        going = undecided
    number = len(drawn)
    return Tally(
        regressed=len(seen["regressed"]) / number,
        improved=len(seen["improved"]) / number,
        differs=len(seen["regressed"] | seen["improved"]) / number,
        equivalent=len(seen["equivalent"]) / number,
        sure=tally.sure / number,
        runs=tally.runs / number,
        covered=sum(covered) / max(1, len(covered)),
        contradicted=tally.contradicted,
    )


def contradicts(one: Comparison) -> bool:
    """Whether the interval holds a ratio that the verdict rules out, or the other way round."""
    low, high = one.low or 0.0, math.inf if one.high is None else one.high
    if one.low is None and one.high is None:
        return one.verdict == "equivalent"
    inside = 1 / (1 + one.margin) <= low and high <= 1 + one.margin
    expected = {
        "regressed": low >= 1 and not inside,
        "improved": high <= 1 and not inside,
        "equivalent": inside,
        "undecided": low <= 1 <= high and not inside,
    }
    return not expected[one.verdict]


def spreads(drawn: list[list[Floats]], *, alpha: float) -> Tally:
    """The verdicts on the spread; each campaign is a family."""
    tally = Tally()
    for groups in drawn:
        words = {one.verdict for one in _spread(groups, alpha)}
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
