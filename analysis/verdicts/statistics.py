# SPDX-License-Identifier: GPL-2.0-or-later
"""Statistics over runs, a row for each comparison: `sample` (K, n) against `base` (K, m).

Values are 0 or more, or infinite (a run that failed; -inf where more is better); none is NaN.
docs/VERDICTS.md says what was chosen and why, and how often it errs.
"""

import math
from functools import lru_cache
from typing import Any, Literal

import numpy as np
from scipy import stats
from scipy.special import ndtri

from analysis.reading.latency_log import Floats
from contract.levels import attainable_p

Alternative = Literal["two-sided", "less", "greater"]
EXACT = 100  # runs of both variants: up to here the distribution of rank sums is exact
ENUMERATED = 13_000  # divisions of the runs in two (8 and 8): up to here all, beyond by lot
RESAMPLES = 2_000
SEED = 20091127
RESOLUTION = 1e-3  # of every time that is recorded, s
POWER = 0.8  # with which the runs that are said to be enough would decide
MOST_RUNS = 100


@lru_cache(maxsize=4096)
def rank_sums(ranks: tuple[int, ...], size: int) -> Floats:
    """P(twice the sum of the first group's ranks = i), every division of the runs being as likely.

    `ranks` are twice the pooled ranks, thus whole. Streitberg and Roehmel's shift algorithm: exact
    with ties too, where scipy's `mannwhitneyu` is not, and without the 40 million divisions of 14
    and 14 runs that `permutation_test` would go through.
    """
    ways = np.zeros((size + 1, sum(ranks) + 1))
    ways[0, 0] = 1
    for rank in ranks:
        ways[1:, rank:] = ways[1:, rank:] + ways[:-1, : ways.shape[1] - rank]
    return np.asarray(ways[size] / ways[size].sum())


def permutation_p(sample: Floats, base: Floats, alternative: Alternative = "two-sided") -> Floats:
    """p of the permutation test on ranks, (K,); ties have their mean rank, inf is a tie with inf.

    Exact up to EXACT runs, beyond that Mann and Whitney's normal approximation, corrected for ties
    and continuity. `alternative`: two-sided, less (the sample is lower) or greater.
    """
    size, runs = sample.shape[1], sample.shape[1] + base.shape[1]
    ranks = stats.rankdata(np.concatenate([sample, base], axis=1), axis=1)
    if runs > EXACT:
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
        chance = rank_sums(tuple(np.sort(doubled[row]).tolist()), size)
        less, greater = chance[: total + 1].sum(), chance[total:].sum()
        sides = {"less": less, "greater": greater, "two-sided": 2 * min(less, greater)}
        p[row] = min(1.0, sides[alternative])
    return p


def cliffs_delta(sample: Floats, base: Floats) -> Floats:
    """P(sample > base) - P(sample < base), (K,), from Mann and Whitney's U; +1: always higher."""
    size, others = sample.shape[1], base.shape[1]
    ranks = stats.rankdata(np.concatenate([sample, base], axis=1), axis=1)
    u = ranks[:, :size].sum(axis=1) - size * (size + 1) / 2
    return np.asarray(2 * u / (size * others) - 1)


def holm(p: Floats) -> Floats:
    """Holm's adjusted p (at most 1), in the order given."""
    order = np.argsort(p, kind="stable")
    adjusted = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1))
    result = np.empty(len(p))
    result[order] = np.minimum(adjusted, 1)
    return result


def fisher_p(failed: int, runs: int, base_failed: int, base_runs: int) -> float:
    """Two-sided p of Fisher's exact test on the runs that failed."""
    table = np.array([[failed, runs - failed], [base_failed, base_runs - base_failed]])
    return min(1.0, float(stats.fisher_exact(table).pvalue))


@lru_cache(maxsize=64)
def _resamples(size: int, which: int) -> Floats:
    """(size, RESAMPLES): the share that each run has in each resample.

    The same for all comparisons of so many runs: no verdict depends on the order of the variants.
    """
    lots = np.random.default_rng((SEED, which, size)).multinomial(
        size, np.full(size, 1 / size), RESAMPLES
    )
    return np.ascontiguousarray(lots.T / size)


def ratio_interval(
    sample: Floats, base: Floats, coverage: float = 0.95
) -> tuple[Floats, Floats, Floats]:
    """Ratio of the means and the bounds of its studentised bootstrap interval, each (K,).

    Over runs, on the logarithm of the ratio; values are finite, at least two a row, of positive
    mean. A bound is 0 or inf where the resamples set none.
    """
    log_ratio = np.log(sample.mean(axis=1) / base.mean(axis=1))
    error = np.sqrt(sum(_relative_variance(values) for values in (sample, base)))
    low, high = np.empty((2, len(sample)))
    tail = (1 - coverage) / 2
    for at in range(0, len(sample), 500):  # 500 rows of resamples at once: 8 MB each
        rows = slice(at, at + 500)
        logs, variances = zip(_resampled(sample[rows], 0), _resampled(base[rows], 1), strict=True)
        with np.errstate(divide="ignore", invalid="ignore"):
            shift = logs[0] - logs[1]
            t = np.where(np.isinf(shift), shift, shift / np.sqrt(variances[0] + variances[1]))
        t[np.isnan(t)] = 0  # no shift and no error, or no stall in either
        low[rows], high[rows] = np.quantile(t, (tail, 1 - tail), axis=1, method="inverted_cdf")
    with np.errstate(over="ignore", invalid="ignore"):
        bounds = [np.exp(log_ratio - np.where(error > 0, t * error, 0)) for t in (high, low)]
    return np.exp(log_ratio), bounds[0], bounds[1]


def _relative_variance(values: Floats) -> Floats:
    """Variance of the mean of each row over its square."""
    mean, runs = values.mean(axis=1), values.shape[1]
    return np.asarray(values.var(axis=1, ddof=1) / runs / mean**2)


def _resampled(values: Floats, which: int) -> tuple[Floats, Floats]:
    """Of each resample: log of its mean over the mean, and its own relative variance."""
    runs = values.shape[1]
    shares = _resamples(runs, which)
    deviation = values / values.mean(axis=1, keepdims=True) - 1
    mean = deviation @ shares
    variance = np.maximum(deviation**2 @ shares - mean**2, 0) / (runs - 1)
    variance[variance < 1e-14] = 0  # one run drawn over and over, but for rounding
    mean += 1
    mean[mean < 1e-14] = 0
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.log(mean), variance / mean**2


def spread_p(sample: Floats, base: Floats) -> Floats:
    """p (K,) that the runs of one variant scatter as much as the other's, relative to their level.

    Permutation test: log(1 + value), less its group's mean without the highest and lowest quarter,
    is divided anew; the statistic is the log ratio of Gini's mean differences, which does not
    depend on where a group lies.
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
    """log of the mean difference of two values (Gini's), and of the clock's resolution."""
    ordered = np.moveaxis(np.sort(values, axis=axis), axis, -1)
    size = ordered.shape[-1]
    weights = (2 * np.arange(1, size + 1) - size - 1) / (size * (size - 1) / 2)
    return np.asarray(np.log(ordered @ weights + RESOLUTION))


def attainable_spread_p(size: int, others: int) -> float:
    """The smallest p of `spread_p`: mirrored, two groups of one size are another division."""
    mirrored = 2 if size == others else 1
    return min(1.0, mirrored / math.comb(size + others, size))


def equivalence_p(sample: Floats, base: Floats, margin: float) -> Floats:
    """p (K,) that the true ratio is 1 + margin or more, or 1 / (1 + margin) or less.

    Two one-sided exact permutation tests of the values scaled by the margin; the worse p counts,
    twice, so that it needs as many runs as a difference does. Where every value is 0 there is no
    ratio: p is then that so many runs are all 0 if the typical (median) run of either is not.
    """
    below = permutation_p(sample / (1 + margin), base, "less")
    above = permutation_p(sample * (1 + margin), base, "greater")
    nothing = (sample == 0).all(axis=1) & (base == 0).all(axis=1)
    none_by_chance = 0.5 ** min(sample.shape[1], base.shape[1])
    shown = np.minimum(1, 2 * np.maximum(below, above))
    return np.asarray(np.where(nothing, none_by_chance, shown))


def runs_to_differ(delta: float, needed: float) -> float:
    """Noether's number of runs of each, if the true Cliff's delta is the one that was seen."""
    z = ndtri(1 - needed / 2) + ndtri(POWER)
    return float(z**2 / (1.5 * delta**2)) if delta else math.inf


def runs_to_be_equivalent(log_ratio: float, variance: float, margin: float, needed: float) -> float:
    """Runs of each to show that the ratio lies inside the margin, if it is the one that was seen.

    `variance`: of the logarithm of one run, the sum of both variants'.
    """
    room = math.log1p(margin) - abs(log_ratio)
    z = ndtri(1 - needed / 2) + ndtri((1 + POWER) / 2)
    return float(z**2 * variance / room**2) if room > 0 else math.inf


def least_more_runs(size: int, others: int, needed: float, least: float = 0) -> int | None:
    """How many more runs of each make p <= needed possible, and min(size, others) + it >= least.

    None: more than MOST_RUNS.
    """
    for more in range(MOST_RUNS + 1):
        if min(size, others) + more >= least and attainable_p(size + more, others + more) <= needed:
            return more
    return None
