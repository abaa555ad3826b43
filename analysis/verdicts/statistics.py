# SPDX-License-Identifier: GPL-2.0-or-later
"""Statistics over runs, a row for each comparison: `sample` (K, n) against `base` (K, m).

Values are 0 or more, or infinite (a run that failed; -inf where more is better); none is NaN. They
have the metric's unit; every p is a probability, 0 to 1. The value of a run that was not done at
its limit is a lower bound: `sample_most` and `base_most` are the upper bounds of the values, inf
for such runs. Runs are then ranked by Gehan's scores (Biometrika 1965): a run is above another run
only if it surely is, else the two are tied.

`hosts`, if given, are the host numbers of `sample` and of `base`; every host has its own clock.
Runs are then compared, and divided anew, only within a host.
docs/developer/verdict-validation.md explains the choice of tests and how often they are wrong.
"""

import bisect
import math
from functools import lru_cache
from typing import Any, Literal

import numpy as np
from scipy import stats
from scipy.special import ndtri

from analysis.reading.latency_log import Floats
from contract.levels import attainable_p

Alternative = Literal["two-sided", "less", "greater"]
Most = Floats | None  # upper bounds of values; None: the values are exact
EXACT = 100  # runs of both variants: up to here the distribution of rank sums is exact
EXACT_GROUP = 10  # runs of the smaller variant: up to here it is always exact
ENUMERATED = 13_000  # divisions of the runs in two (8 and 8): beyond it a random choice
SEED = 20091127
RESOLUTION = 1e-3  # s, of every recorded time
POWER = 0.8  # probability that the estimated number of runs decides
MOST_RUNS = 100


@lru_cache(maxsize=4096)
def rank_sums(ranks: tuple[int, ...], size: int) -> Floats:
    """P(twice the sum of the first group's ranks = i), all divisions of the runs equally likely.

    `ranks`: twice the pooled ranks, which are integers. Streitberg and Roehmel's shift algorithm:
    exact also with ties, where scipy's `mannwhitneyu` is not, and without the 40 million divisions
    of 14 and 14 runs that `permutation_test` would try.
    """
    ways = np.zeros((size + 1, sum(sorted(ranks)[len(ranks) - size :]) + 1))
    ways[0, 0] = 1
    for rank in ranks:
        ways[1:, rank:] = ways[1:, rank:] + ways[:-1, : ways.shape[1] - rank]
    return np.asarray(ways[size] / ways[size].sum())


def rank_sum_tails(ranks: tuple[int, ...], size: int, total: int) -> tuple[float, float]:
    """P(sum <= total), P(sum >= total) for twice the ranks of a group of `size` runs."""
    others = len(ranks) - size
    if others < size:  # the smaller group's distribution is cheaper
        greater, less = rank_sum_tails(ranks, others, sum(ranks) - total)
        return less, greater
    chance = rank_sums(ranks, size)
    return float(chance[: total + 1].sum()), float(chance[total:].sum())


def is_exact(size: int, others: int) -> bool:
    """Whether the rank sums of two groups of these sizes get their exact distribution."""
    return size + others <= EXACT or min(size, others) <= EXACT_GROUP


def doubled_ranks(low: Floats, high: Floats) -> Floats:
    """Twice the ranks of values between these bounds, (K, N); integers from 2 to 2 N.

    Gehan's scores: how many others are surely lower, minus how many are surely higher, plus N + 1.
    For exact values these are twice the mean ranks.
    """
    lower = (high[:, None, :] < low[:, :, None]).sum(axis=2)
    higher = (low[:, None, :] > high[:, :, None]).sum(axis=2)
    return np.asarray(lower - higher + low.shape[1] + 1)


def permutation_p(
    sample: Floats,
    base: Floats,
    alternative: Alternative = "two-sided",
    sample_most: Most = None,
    base_most: Most = None,
    *hosts: Floats,
) -> Floats:
    """p of the permutation test on ranks, (K,); ties have their mean rank, inf is a tie with inf.

    Exact if `is_exact` or within hosts, else Mann and Whitney's normal approximation, corrected for
    ties and continuity. `alternative`: two-sided, less (the sample is lower) or greater.
    """
    size = sample.shape[1]
    low = np.concatenate([sample, base], axis=1)
    if hosts:
        whole = sample_most is None or base_most is None
        high = low if whole else np.concatenate([sample_most, base_most], axis=1)
        comparisons = zip(low, high, np.concatenate(hosts, axis=1), strict=True)
        return np.array(
            [_side(*_tails_within(*comparison, size), alternative) for comparison in comparisons]
        )
    if sample_most is None or base_most is None:
        ranks = stats.rankdata(low, axis=1)
    else:
        ranks = doubled_ranks(low, np.concatenate([sample_most, base_most], axis=1)) / 2
    if not is_exact(size, base.shape[1]):
        # It ranks scores that are no ranks, so that a few more runs tie.
        first, second = ranks[:, :size], ranks[:, size:]
        done: Any = stats.mannwhitneyu(
            first, second, alternative=alternative, axis=1, method="asymptotic"
        )
        return np.asarray(
            np.where(np.isnan(done.pvalue), 1.0, done.pvalue)
        )  # NaN: all runs are alike
    doubled = np.rint(2 * ranks).astype(np.int64)
    observed = doubled[:, :size].sum(axis=1)
    p = np.empty(len(sample))
    for row, total in enumerate(observed):
        tails = rank_sum_tails(tuple(np.sort(doubled[row]).tolist()), size, int(total))
        p[row] = _side(*tails, alternative)
    return p


def _side(less: float, greater: float, alternative: Alternative) -> float:
    sides = {"less": less, "greater": greater, "two-sided": 2 * min(less, greater)}
    return min(1.0, sides[alternative])


def _tails_within(low: Floats, high: Floats, hosts: Floats, size: int) -> tuple[float, float]:
    """`rank_sum_tails` of all runs (N,), the sample's `size` runs first, ranked within each host.

    The sum is over all hosts, for every division of the runs within the hosts.
    """
    chance, total = np.ones(1), 0
    for host in np.unique(hosts):
        here = hosts == host
        doubled = doubled_ranks(low[None, here], high[None, here])[0].astype(int)
        of_sample = int(here[:size].sum())
        chance = np.convolve(chance, rank_sums(tuple(np.sort(doubled).tolist()), of_sample))
        total += int(doubled[:of_sample].sum())
    return float(chance[: total + 1].sum()), float(chance[total:].sum())


def attainable_within(*hosts: Floats, more: int = 0) -> float:
    """`attainable_p` within hosts: the host numbers of both groups, (n,) and (m,).

    more: further runs of each group, spread evenly over the hosts.
    """
    named = np.unique(np.concatenate(hosts))
    divisions = 1
    for place, host in enumerate(named):
        further = len(range(place, more, len(named)))
        size, others = (int((numbers == host).sum()) + further for numbers in hosts)
        divisions *= math.comb(size + others, size)
    return min(1.0, 2 / divisions)


def cliffs_delta(
    sample: Floats,
    base: Floats,
    sample_most: Most = None,
    base_most: Most = None,
    *hosts: Floats,
) -> Floats:
    """P(sample > base) - P(sample < base), (K,), from Mann and Whitney's U; +1: always higher.

    Runs that were not done count as higher or lower only if they surely are. 0 if no host has runs
    of both.
    """
    if hosts:
        same = hosts[0][:, :, None] == hosts[1][:, None, :]
        most = sample if sample_most is None else sample_most
        others_most = base if base_most is None else base_most
        higher = ((sample[:, :, None] > others_most[:, None, :]) & same).sum(axis=(1, 2))
        lower = ((most[:, :, None] < base[:, None, :]) & same).sum(axis=(1, 2))
        return np.asarray((higher - lower) / np.maximum(1, same.sum(axis=(1, 2))))
    if sample_most is not None and base_most is not None:
        higher = (sample[:, :, None] > base_most[:, None, :]).mean(axis=(1, 2))
        lower = (sample_most[:, :, None] < base[:, None, :]).mean(axis=(1, 2))
        return np.asarray(higher - lower)
    size, others = sample.shape[1], base.shape[1]
    ranks = stats.rankdata(np.concatenate([sample, base], axis=1), axis=1)
    u = ranks[:, :size].sum(axis=1) - size * (size + 1) / 2
    return np.asarray(2 * u / (size * others) - 1)


def holm(p: Floats) -> Floats:
    """Holm's adjusted p (at most 1), in the given order."""
    order = np.argsort(p, kind="stable")
    adjusted = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1))
    result = np.empty(len(p))
    result[order] = np.minimum(adjusted, 1)
    return result


def holm_factors(p: Floats, level: float) -> Floats:
    """The divisors of the level with which Holm's procedure tested each p, in the given order.

    It proceeds to the next larger p while it rejects; all after the first p that it does not reject
    are held to the level of that p.
    """
    order = np.argsort(p, kind="stable")
    steps = np.arange(len(p), 0, -1)
    # Equal values get the divisor of the first of them, whatever their order.
    steps = steps[np.searchsorted(p[order], p[order])]
    rejected = int(np.logical_and.accumulate(p[order] * steps <= level).sum())
    result = np.empty(len(p))
    result[order] = np.where(np.arange(len(p)) < rejected, steps, len(p) - rejected)
    return result


def fisher_p(failed: int, runs: int, base_failed: int, base_runs: int) -> float:
    """Two-sided p of Fisher's exact test on the numbers of failed runs."""
    table = np.array([[failed, runs - failed], [base_failed, base_runs - base_failed]])
    return min(1.0, float(stats.fisher_exact(table).pvalue))


def paired_ratios(sample: Floats, base: Floats, *hosts: Floats) -> Floats:
    """The sorted ratios sample[i] / base[j] of all pairs of two groups of runs, (n,) and (m,).

    0 and inf are among them. Pairs without a ratio (both 0, or both failed) and pairs of runs on
    different hosts are left out.
    """
    first, second = np.repeat(sample, len(base)), np.tile(base, len(sample))
    if hosts:
        same = np.repeat(hosts[0], len(base)) == np.tile(hosts[1], len(sample))
        first, second = first[same], second[same]
    alike = (first == second) & ((first == 0) | np.isinf(first))
    first, second = first[~alike], second[~alike]
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.where(np.isneginf(first), 0.0, first / second)
    return np.sort(np.where(np.isneginf(second), np.inf, ratios))


def median_ratio(sample: Floats, base: Floats) -> float | None:
    """exp of the median of log(x / y) over all pairs of runs (Hodges and Lehmann's estimate).

    None if no pair has a ratio, or if the median is 0 or infinite.
    """
    ratio = _median_of_pairs(sample, base)
    return ratio if ratio is not None and 0 < ratio < math.inf else None


def ratio_bounds(
    sample: Floats, base: Floats, sample_most: Floats, base_most: Floats, *hosts: Floats
) -> tuple[float, float]:
    """The lower and upper bound of `median_ratio`: 0 and inf where nothing is known."""
    low = _median_of_pairs(sample, base_most, *hosts)
    high = _median_of_pairs(sample_most, base, *hosts)
    return low or 0.0, math.inf if high is None else high


def bounded_ratio(
    middle: tuple[float, float], interval: tuple[float, float]
) -> tuple[float | None, str]:
    """The ratio if some runs were not done, or else its more informative bound, and '', >= or <=.

    middle: `ratio_bounds`; interval: `ratio_interval`.
    """
    low, high = middle
    if low == high:
        return (low, "") if 0 < low < math.inf else (None, "")
    least, most = max(low, interval[0]), min(high, interval[1])
    if least > 0 and (least >= 1 or most > 1):
        return least, ">="
    return (most, "<=") if most < math.inf else (None, "")


def _median_of_pairs(sample: Floats, base: Floats, *hosts: Floats) -> float | None:
    ratios = paired_ratios(sample, base, *hosts)
    if not len(ratios):
        return None
    low, high = ratios[(len(ratios) - 1) // 2], ratios[len(ratios) // 2]
    return float(low if low == high else math.sqrt(low) * math.sqrt(high))


def ratio_interval(
    sample: Floats,
    base: Floats,
    level: float,
    sample_most: Most = None,
    base_most: Most = None,
    *hosts: Floats,
) -> tuple[float, float] | None:
    """The ratios that the test on ranks does not reject: p > level for sample / ratio and base.

    Two groups of runs, (n,) and (m,). From 0, or to inf, where the runs set no bound. None: so few
    runs cannot reject any ratio, or the test rejects all ratios.
    """
    smallest = attainable_within(*hosts) if hosts else attainable_p(len(sample), len(base))
    if smallest > level:
        return None
    ratios = paired_ratios(sample, base, *hosts)
    if sample_most is not None and base_most is not None:
        sides = paired_ratios(sample, base_most, *hosts), paired_ratios(sample_most, base, *hosts)
        ratios = np.concatenate(sides)
    steps = np.unique(ratios[(ratios > 0) & np.isfinite(ratios)])

    # Between two neighbouring steps there is no pair's ratio, so the order of the runs is the same.
    def rejected(between: int, alternative: Alternative) -> bool:
        below = steps[between - 1] if between else steps[0] / 4 if len(steps) else 1.0
        above = steps[between] if between < len(steps) else below * 4
        ratio = math.sqrt(below) * math.sqrt(above)
        most = None if sample_most is None else sample_most[None] / ratio
        against = None if base_most is None else base_most[None]
        host_rows = [numbers[None] for numbers in hosts]
        p = permutation_p(sample[None] / ratio, base[None], alternative, most, against, *host_rows)
        return bool(2 * p[0] <= level)

    places = range(len(steps) + 1)
    # A larger ratio makes the sample smaller: each side is rejected up to a place, or from it on.
    first = bisect.bisect_left(places, True, key=lambda place: not rejected(place, "greater"))
    after = bisect.bisect_left(places, True, key=lambda place: rejected(place, "less"))
    if first == after:  # only the step between them is left: all runs are alike
        return (float(steps[first - 1]),) * 2 if 0 < first <= len(steps) else None
    low = float(steps[first - 1]) if first else 0.0
    return low, float(steps[after - 1]) if after <= len(steps) else math.inf


def spread_p(sample: Floats, base: Floats) -> Floats:
    """p (K,) that the runs of two variants scatter alike, relative to their level.

    Permutation test of log(1 + value) minus its group's mean (without the highest and lowest
    quarter); the statistic is the log ratio of Gini's mean differences, which does not depend on a
    group's level.
    """
    if sample.shape[1] < 2 or base.shape[1] < 2:
        return np.ones(len(sample))
    enumerate_all = math.comb(sample.shape[1] + base.shape[1], base.shape[1]) <= ENUMERATED
    done = stats.permutation_test(
        (_centred(sample), _centred(base)),
        lambda first, second, axis: np.abs(log_scatter(first, axis) - log_scatter(second, axis)),
        vectorized=True,
        n_resamples=ENUMERATED if enumerate_all else 4_999,
        batch=max(1, 1_000_000 // (len(sample) * (sample.shape[1] + base.shape[1]))),
        alternative="greater",
        axis=-1,
        rng=np.random.default_rng(SEED),
    )
    return np.asarray(done.pvalue)


def _centred(values: Floats) -> Floats:
    logs = np.log1p(values)
    return np.asarray(logs - np.asarray(stats.trim_mean(logs, 0.25, axis=1))[:, None])


def log_scatter(values: Floats, axis: int) -> Floats:
    """log of Gini's mean difference of two values, plus RESOLUTION so that it is finite."""
    ordered = np.moveaxis(np.sort(values, axis=axis), axis, -1)
    size = ordered.shape[-1]
    weights = (2 * np.arange(1, size + 1) - size - 1) / (size * (size - 1) / 2)
    return np.asarray(np.log(ordered @ weights + RESOLUTION))


def attainable_spread_p(size: int, others: int) -> float:
    """The smallest p of `spread_p`; groups of equal size can be swapped, which doubles it."""
    mirrored = 2 if size == others else 1
    return min(1.0, mirrored / math.comb(size + others, size))


def equivalence_p(
    sample: Floats,
    base: Floats,
    margin: float,
    sample_most: Most = None,
    base_most: Most = None,
    *hosts: Floats,
) -> Floats:
    """p (K,) that the true ratio is 1 + margin or more, or 1 / (1 + margin) or less.

    Two one-sided exact permutation tests of the values scaled by the margin; the larger p counts,
    doubled, so that it needs as many runs as a difference does. If all values are 0 there is no
    ratio: p is then the probability of so many zeros if the median run of either group is not 0.
    """

    def p(by: float, alternative: Alternative) -> Floats:
        most = None if sample_most is None else sample_most * by
        return permutation_p(sample * by, base, alternative, most, base_most, *hosts)

    below, above = p(1 / (1 + margin), "less"), p(1 + margin, "greater")
    nothing = (sample == 0).all(axis=1) & (base == 0).all(axis=1)
    for most in (sample_most, base_most):
        nothing &= True if most is None else (most == 0).all(axis=1)
    none_by_chance = 0.5 ** min(sample.shape[1], base.shape[1])
    shown = np.minimum(1, 2 * np.maximum(below, above))
    return np.asarray(np.where(nothing, none_by_chance, shown))


def runs_to_differ(delta: float, needed: float) -> float:
    """Noether's number of runs of both groups, if the true Cliff's delta is the observed delta."""
    z = ndtri(1 - needed / 2) + ndtri(POWER)
    return float(z**2 / (1.5 * delta**2)) if delta else math.inf


def runs_to_be_equivalent(log_ratio: float, variance: float, margin: float, needed: float) -> float:
    """Runs of both groups that would show equivalence, if the true ratio is the observed ratio.

    `variance`: of the logarithm of a run, the sum of both variants'.
    """
    room = math.log1p(margin) - abs(log_ratio)
    z = ndtri(1 - needed / 2) + ndtri((1 + POWER) / 2)
    return float(z**2 * variance / room**2) if room > 0 else math.inf


def least_more_runs(
    size: int, others: int, needed: float, least: float = 0, *hosts: Floats
) -> int | None:
    """How many more runs of both groups make p <= needed possible, and `least` runs of both.

    None: more than MOST_RUNS.
    """
    for more in range(MOST_RUNS + 1):
        p = attainable_p(size + more, others + more)
        p = attainable_within(*hosts, more=more) if hosts else p
        if min(size, others) + more >= least and p <= needed:
            return more
    return None
