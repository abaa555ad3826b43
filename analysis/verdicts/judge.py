# SPDX-License-Identifier: GPL-2.0-or-later
"""From samples to verdicts; the report and the validation of its error rates both use this code."""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from analysis.figures.metrics import Metric
from analysis.reading.latency_log import Floats
from analysis.verdicts.sentences import why
from analysis.verdicts.statistics import (
    attainable_spread_p,
    attainable_within,
    bounded_ratio,
    cliffs_delta,
    equivalence_p,
    fisher_p,
    holm,
    holm_factors,
    least_more_runs,
    log_scatter,
    median_ratio,
    permutation_p,
    ratio_bounds,
    ratio_interval,
    runs_to_be_equivalent,
    runs_to_differ,
    spread_p,
)
from analysis.verdicts.verdict import (
    MANY,
    Comparison,
    Failures,
    Rows,
    Sample,
    Word,
    common_limit,
    hosts_of,
)
from contract.levels import attainable_p

FEWEST = 4  # runs of each variant: fewer do not show how many would decide


@dataclass(frozen=True)
class Pair:
    """What is compared: a metric of a variant with the baseline's."""

    metric: Metric
    variant: str
    base: Sample
    sample: Sample

    @property
    def all(self) -> Rows | None:
        """The values, infinite for runs that failed; None if there is nothing to compare."""
        return rows_of(self.sample, self.base)

    @property
    def limit_s(self) -> float | None:
        """The limit (s) up to which both are compared, if no run of either was done by then."""
        return common_limit(self.metric, self.sample, self.base)

    @property
    def as_compared(self) -> "Pair":
        """The pair; up to a limit its values are exact, not bounds of what runs would come to."""
        if self.limit_s is None:
            return self
        base, sample = (replace(side, cut=()) for side in (self.base, self.sample))
        return replace(self, base=base, sample=sample)

    @property
    def ended(self) -> Rows | None:
        """The values of the runs that ended; None if either has fewer than two.

        None also if they are of several hosts, whose differences would add to the scatter.
        """
        sample, base = self.sample.ended, self.base.ended
        several = bool(hosts_of(self.sample, self.base))
        return None if several or min(len(sample), len(base)) < 2 else (sample, base)


def rows_of(sample: Sample, base: Sample) -> Rows | None:
    """The values of two samples to compare; None if one of them has no value."""
    if not (sample.values and base.values):
        return None
    hosts = hosts_of(sample, base)
    if hosts or sample.cut or base.cut:
        return (sample.values, base.values, sample.most, base.most, *hosts)
    return sample.values, base.values


def judge(pairs: list[Pair], *, level: float, margin: float) -> list[Comparison]:
    """The verdicts of a family: Holm's correction counts all its pairs that have runs.

    `regressed` and `improved`: the permutation test on ranks, where failed runs are worst, rejects
    a ratio of 1. `equivalent`: the ratios that it does not reject, at the same level, lie inside
    the margin. So a difference surely smaller than the margin does not matter, even if it surely
    exists. level: probability, 0 to 1; margin: relative, 0.1 for 10 %.

    If no run of either variant was done, their values up to the limit are compared. The test is
    exact there too: whether no run is done does not depend on which run has which variant. Values
    up to a limit are never `equivalent`, since a limit makes all alike, and with a `doubt` neither
    is better.
    """
    return judge_families([pairs], level=level, margin=margin)[0]


def judge_families(
    families: list[list[Pair]], *, level: float, margin: float
) -> list[list[Comparison]]:
    """`judge` of each family, computed for all families at once."""
    families = [[pair.as_compared for pair in family] for family in families]
    pairs = [pair for family in families for pair in family]
    p = by_size(
        [pair.all for pair in pairs],
        lambda sample, base, *most: permutation_p(sample, base, "two-sided", *most),
    )
    higher = by_size([pair.all for pair in pairs], cliffs_delta)
    delta = [
        None if value is None else pair.metric.sign * value
        for pair, value in zip(pairs, higher, strict=True)
    ]
    outside = by_size(
        [pair.all for pair in pairs],
        lambda sample, base, *most: equivalence_p(sample, base, margin, *most),
    )
    results: list[list[Comparison]] = []
    at = 0
    for family in families:
        part = slice(at, at + len(family))
        at += len(family)
        adjusted, factors = _adjusted(p[part]), _factors(p[part], level)
        needed = _needed(p[part], [pair.all for pair in family], level)
        results.append([])
        for i, pair in enumerate(family):
            factor, outside_p = factors[i], outside[part][i]
            tested = None if factor is None else level / factor
            middle, bound, low, high = _ratios(pair, p[part][i], higher[part][i], tested)
            comparison = Comparison(
                metric=pair.metric,
                variant=pair.variant,
                base=pair.base,
                sample=pair.sample,
                ratio=middle,
                bound=bound,
                low=low,
                high=high,
                p=p[part][i],
                p_adjusted=adjusted[i],
                delta=delta[part][i],
                tested=tested,
                p_equivalent=None if factor is None else min(1.0, outside_p * factor),
                smallest=smallest_p(pair.all, attainable_p),
                needed=needed[i],
                level=level,
                margin=margin,
                limit_s=pair.limit_s,
            )
            verdict = _verdict(comparison)
            comparison = replace(comparison, verdict=verdict)
            if verdict == "undecided" and not (comparison.none_ended or comparison.doubt):
                comparison = _with_prospect(comparison)
            results[-1].append(replace(comparison, why=why(comparison)))
    return results


def judge_spread(pairs: list[Pair], *, level: float) -> list[Comparison]:
    """Whether the runs scatter more or less than the baseline's, relative to their level.

    Compares the runs that ended; a family of its own, and never `equivalent`.
    """
    p = by_size([pair.ended for pair in pairs], spread_p)
    adjusted = _adjusted(p)
    needed = _needed(p, [pair.ended for pair in pairs], level, attainable_spread_p)
    comparisons: list[Comparison] = []
    for i, pair in enumerate(pairs):
        base, sd = pair.base.sd, pair.sample.sd
        comparison = Comparison(
            metric=pair.metric,
            variant=pair.variant,
            base=pair.base,
            sample=pair.sample,
            ratio=sd / base if base and sd is not None else None,
            p=p[i],
            p_adjusted=adjusted[i],
            smallest=smallest_p(pair.ended, attainable_spread_p),
            needed=needed[i],
            level=level,
        )
        if comparison.differs:
            more = _scatter(pair.sample) > _scatter(pair.base)
            comparison = replace(comparison, verdict="regressed" if more else "improved")
        comparisons.append(replace(comparison, why=why(comparison, spread=True)))
    return comparisons


def judge_failures(
    runs: Mapping[str, tuple[Sample, Sample]], *, level: float
) -> dict[str, Failures]:
    """Fisher's exact test on the runs that failed, a family of its own; within hosts, by ranks.

    runs: how the runs of each variant and of its baseline ended.
    """
    tested = {variant: _failures_p(*pair) for variant, pair in runs.items()}
    results: dict[str, Failures] = {}
    for (variant, (p, more)), adjusted in zip(
        tested.items(), holm(np.array([p for p, _ in tested.values()])), strict=True
    ):
        count, against = ((sample.failed, len(sample.values)) for sample in runs[variant])
        verdict: Word = "undecided"
        if adjusted <= level:
            verdict = "regressed" if more else "improved"
        results[variant] = Failures(variant, *count, *against, p, float(adjusted), verdict)
    return results


def _failures_p(sample: Sample, base: Sample) -> tuple[float, bool]:
    """p that runs of both fail equally often, and whether the sample's fail more often."""
    if hosts_of(sample, base) and (rows := rows_of(sample, base)):
        first, second, *more = (np.array([side]) for side in rows)
        p = permutation_p(first, second, "two-sided", *more)
        return float(p[0]), bool(cliffs_delta(first, second, *more)[0] > 0)
    count, against = ((side.failed, len(side.values)) for side in (sample, base))
    return fisher_p(*count, *against), count[0] * against[1] > against[0] * count[1]


def _verdict(comparison: Comparison) -> Word:
    inside = comparison.low is not None and comparison.high is not None
    inside = (
        inside
        and 1 / (1 + comparison.margin) <= (comparison.low or 0)
        and (comparison.high or 0) <= 1 + comparison.margin
    )
    nothing = not any(comparison.base.most) and not any(comparison.sample.most)
    if nothing and comparison.p_equivalent is not None:
        inside = not comparison.too_few and comparison.p_equivalent <= comparison.level
    if inside and comparison.limit_s is None:
        return "equivalent"
    if comparison.differs and comparison.delta and not comparison.doubt:
        return "regressed" if comparison.delta > 0 else "improved"
    return "undecided"


def _with_prospect(comparison: Comparison) -> Comparison:
    """The comparison with the number of runs that would decide it, or the fewest that could."""
    if comparison.needed is None or comparison.delta is None:
        return comparison
    size, others = len(comparison.sample.values), len(comparison.base.values)
    if min(size, others) >= FEWEST:
        return replace(
            comparison, more_runs=_more_runs(comparison, comparison.delta, comparison.needed)
        )
    hosts = {number for row in hosts_of(comparison.sample, comparison.base) for number in row}
    first = [np.array([*hosts])] * 2 if hosts else []  # a run of both variants on every host
    least = least_more_runs(1, 1, comparison.needed, 0, *first)
    runs = None if least is None else max(FEWEST, max(1, len(hosts)) + least)
    return replace(comparison, least_runs=runs)


def _more_runs(comparison: Comparison, delta: float, needed: float) -> int:
    """About how many more runs of both variants would decide, if they were like the existing."""
    size, others = len(comparison.sample.values), len(comparison.base.values)
    enough = runs_to_differ(delta, needed)
    if comparison.limit_s is None:
        enough = min(enough, _runs_to_be_alike(comparison, needed))
    hosts = map(np.array, hosts_of(comparison.sample, comparison.base))
    more = least_more_runs(size, others, needed, enough, *hosts)
    return MANY if more is None else max(1, more)


def _runs_to_be_alike(comparison: Comparison, needed: float) -> float:
    """Runs of both variants that would show equivalence, if they were like the existing."""
    if not any(comparison.sample.most) and not any(comparison.base.most):
        return math.log2(1 / needed)  # runs without a stall: see equivalence_p
    relative = [
        (sample.sd / sample.mean) ** 2
        for sample in (comparison.sample, comparison.base)
        if sample.sd is not None and sample.mean
    ]
    whole = not any(sample.failed or sample.cut for sample in (comparison.sample, comparison.base))
    if not (comparison.ratio and len(relative) == 2 and whole):
        return math.inf
    return runs_to_be_equivalent(
        math.log(comparison.ratio), sum(relative), comparison.margin, needed
    )


def by_size(rows: Iterable[Rows | None], function: Callable[..., Floats]) -> list[Any]:
    """function(*row) of each row, called once for all rows of the same sizes; None for None."""
    results: list[Any] = [*rows]
    groups: dict[tuple[int, ...], list[int]] = {}
    for i, row in enumerate(results):
        if row is not None:
            groups.setdefault(tuple(map(len, row)), []).append(i)
    for members in groups.values():
        sides = zip(*(results[i] for i in members), strict=True)
        values = function(*map(np.array, sides))
        for i, value in zip(members, values, strict=True):
            results[i] = value if np.ndim(value) else float(value)
    return results


def _adjusted(p: list[float | None]) -> list[float | None]:
    """Holm's adjusted p of the comparisons that have a p."""
    known = [i for i, one in enumerate(p) if one is not None]
    result: list[float | None] = [None] * len(p)
    for i, value in zip(known, holm(np.array([p[i] for i in known])), strict=True):
        result[i] = float(value)
    return result


def _factors(p: list[float | None], level: float) -> list[int | None]:
    """The divisor of the level in Holm's correction, for each comparison that has a p."""
    known = [i for i, one in enumerate(p) if one is not None]
    result: list[int | None] = [None] * len(p)
    for i, factor in zip(known, holm_factors(np.array([p[i] for i in known]), level), strict=True):
        result[i] = int(factor)
    return result


def _needed(
    p: list[float | None],
    rows: list[Rows | None],
    level: float,
    attainable: Callable[[int, int], float] = attainable_p,
) -> list[float | None]:
    """The p that each comparison needs in its family, if its runs gave their smallest possible p.

    Holm divides the level by the number of comparisons whose p is not smaller.
    """
    known = np.sort([one for one in p if one is not None])
    result: list[float | None] = []
    for one in rows:
        smallest = smallest_p(one, attainable)
        before = 0 if smallest is None else int(np.searchsorted(known, smallest * (1 - 1e-9)))
        result.append(None if smallest is None else level / max(1, len(known) - before))
    return result


def smallest_p(
    rows: Rows | None, attainable: Callable[[int, int], float] = attainable_p
) -> float | None:
    """The smallest p that these numbers of runs could give; None if either has no runs."""
    if rows is not None and len(rows) > 4:
        return attainable_within(*map(np.array, rows[4:]))
    return None if rows is None else attainable(len(rows[0]), len(rows[1]))


def _ratios(
    pair: Pair, p: float | None, higher: float | None, tested: float | None
) -> tuple[float | None, str, float | None, float | None]:
    """The ratio and its `bound`, then the lowest and highest ratio that are not rejected.

    At the level that p was tested at. None instead of 0 or inf, which are no bounds.
    """
    rows = pair.all
    if rows is None or p is None or tested is None:
        return None, "", None, None
    sample, base, *most = map(np.array, rows)
    interval = ratio_interval(sample, base, tested, *most)
    ratio = None if most else median_ratio(sample, base)
    if interval is None or not (ratio or most):
        return ratio, "", None, None
    low, high = interval
    # If runs are exactly equal, 1 is a step itself: the interval is made to agree with p.
    if p > tested:
        low, high = min(low, 1.0), max(high, 1.0)
    elif higher is not None and higher > 0:
        low = max(low, 1.0)
    else:
        high = min(high, 1.0)
    bound = ""
    if most:
        ratio, bound = bounded_ratio(ratio_bounds(sample, base, *most), (low, high))
    return ratio, bound, low or None, high if math.isfinite(high) else None


def _scatter(sample: Sample) -> float:
    """The log scatter that spread_p compares."""
    return float(log_scatter(np.log1p(sample.ended), 0))
