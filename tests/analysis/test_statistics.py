# SPDX-License-Identifier: GPL-2.0-or-later
"""The statistics against published examples, against scipy's enumeration, and by their laws."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from analysis.reading.latency_log import Floats
from analysis.verdicts.statistics import (
    EXACT,
    attainable_spread_p,
    cliffs_delta,
    equivalence_p,
    fisher_p,
    holm,
    holm_factors,
    least_more_runs,
    median_ratio,
    permutation_p,
    ratio_interval,
    runs_to_be_equivalent,
    runs_to_differ,
    spread_p,
)
from contract.levels import attainable_p

# Few different values, so that there are ties; inf is a run that failed.
VALUES = st.one_of(st.integers(0, 6).map(float), st.floats(0.001, 1e6), st.just(math.inf))
GROUP = st.lists(VALUES, min_size=1, max_size=6)
TIMES = st.lists(st.floats(0.5, 1e4), min_size=2, max_size=8)


def row(*values: float) -> Floats:
    return np.array([values], dtype=np.float64)


# R's wilcox.test, Hollander and Wolfe 1973, p. 69 f.: W = 35, p = 0.1272 for "greater".
PERMEABILITY_TERM = row(0.80, 0.83, 1.89, 1.04, 1.45, 1.38, 1.91, 1.64, 0.73, 1.46)
PERMEABILITY_EARLY = row(1.15, 0.88, 0.90, 0.74, 1.21)


def test_permutation_against_rs_example() -> None:
    p = permutation_p(PERMEABILITY_TERM, PERMEABILITY_EARLY, "greater")
    assert p[0] == pytest.approx(0.1272, abs=5e-5)
    both = permutation_p(PERMEABILITY_TERM, PERMEABILITY_EARLY)
    assert both[0] == pytest.approx(0.2544, abs=5e-5)


def test_permutation_against_scipys_example() -> None:
    """scipy.stats.mannwhitneyu: diabetes by age, U = 17, exact p = 0.1111."""
    p = permutation_p(row(19, 22, 16, 29, 24), row(20, 11, 17, 12))
    assert p[0] == pytest.approx(1 / 9)


@given(GROUP, GROUP)
def test_permutation_is_what_scipy_enumerates(sample: list[float], base: list[float]) -> None:
    if min(len(sample), len(base)) < 2:
        return  # scipy does not take one run
    ranks = stats.rankdata(sample + base)
    done = stats.permutation_test(
        (ranks[: len(sample)], ranks[len(sample) :]),
        lambda first, second, axis: first.sum(axis=axis),
        vectorized=True,
        n_resamples=10_000,
    )
    assert permutation_p(row(*sample), row(*base))[0] == pytest.approx(done.pvalue, abs=1e-12)


def test_without_ties_it_is_scipys_exact_mann_whitney_at_any_size() -> None:
    rng = np.random.default_rng(1)
    for size, others in ((9, 9), (14, 20), (50, 50)):
        sample, base = rng.normal(0.5, 1, (3, size)), rng.normal(0, 1, (3, others))
        exact = stats.mannwhitneyu(sample, base, axis=1, method="exact").pvalue
        assert permutation_p(sample, base) == pytest.approx(exact, rel=1e-9)


def test_many_runs_take_the_normal_approximation() -> None:
    rng = np.random.default_rng(2)
    sample, base = rng.normal(0.3, 1, (1, EXACT)), rng.normal(0, 1, (1, EXACT))
    exact = np.asarray(stats.mannwhitneyu(sample, base, axis=1, method="exact").pvalue)
    assert permutation_p(sample, base)[0] == pytest.approx(exact[0], rel=0.1)
    assert permutation_p(np.ones((1, EXACT)), np.ones((1, EXACT)))[0] == 1


@given(GROUP, GROUP)
def test_p_is_a_probability_and_the_order_of_the_groups_does_not_matter(
    one: list[float], other: list[float]
) -> None:
    p = permutation_p(row(*one), row(*other))[0]
    assert 0 < p <= 1
    assert p == pytest.approx(permutation_p(row(*other), row(*one))[0])
    assert p >= attainable_p(len(one), len(other)) * (1 - 1e-12)
    less = permutation_p(row(*one), row(*other), "less")[0]
    assert less == pytest.approx(permutation_p(row(*other), row(*one), "greater")[0])


@given(GROUP, GROUP, st.sampled_from((0.25, 2.0, 1024.0)))
def test_units_do_not_matter(one: list[float], other: list[float], factor: float) -> None:
    scaled = [factor * value for value in one], [factor * value for value in other]
    before = permutation_p(row(*one), row(*other))[0]
    assert before == permutation_p(row(*scaled[0]), row(*scaled[1]))[0]


def test_a_failed_run_is_the_worst_and_as_bad_as_another() -> None:
    """Pooled 1 2 3 4 and two inf (ranks 5.5): of 20 divisions 2 have sum 6 or 15."""
    assert permutation_p(row(4, math.inf, math.inf), row(1, 2, 3))[0] == pytest.approx(2 / 20)
    assert permutation_p(row(math.inf, math.inf), row(math.inf, math.inf))[0] == 1
    assert cliffs_delta(row(4, math.inf, math.inf), row(1, 2, 3))[0] == 1


@pytest.mark.parametrize(
    ("size", "others", "p"), [(3, 3, 0.1), (4, 4, 2 / 70), (5, 5, 2 / 252), (1, 1, 1)]
)
def test_attainable_p(size: int, others: int, p: float) -> None:
    assert attainable_p(size, others) == pytest.approx(p)
    apart = row(*range(size)), row(*range(size, size + others))
    assert permutation_p(*apart)[0] == pytest.approx(p)


def test_cliffs_delta_of_effsizes_example() -> None:
    """R's effsize, cliff.delta: -0.25."""
    treatment = row(10, 10, 20, 20, 20, 30, 30, 30, 40, 50)
    assert cliffs_delta(treatment, row(10, 20, 30, 40, 40, 50))[0] == pytest.approx(-0.25)


@given(GROUP, GROUP)
def test_cliffs_delta_counts_pairs(one: list[float], other: list[float]) -> None:
    signs = [(a > b) - (a < b) for a in one for b in other]
    delta = cliffs_delta(row(*one), row(*other))[0]
    assert delta == pytest.approx(sum(signs) / len(signs))
    assert delta == pytest.approx(-cliffs_delta(row(*other), row(*one))[0])


def test_holm_of_a_published_example() -> None:
    """0.01 0.04 0.03 0.005: R's p.adjust(method = "holm") gives 0.03 0.06 0.06 0.02."""
    adjusted = holm(np.array([0.01, 0.04, 0.03, 0.005]))
    assert adjusted == pytest.approx([0.03, 0.06, 0.06, 0.02])


@given(st.lists(st.floats(1e-9, 1), min_size=1, max_size=20))
def test_holm_lies_between_no_correction_and_bonferronis(values: list[float]) -> None:
    p = np.array(values)
    adjusted = holm(p)
    assert (adjusted >= p).all() and (adjusted <= np.minimum(1, p * len(p)) + 1e-15).all()
    assert (np.diff(adjusted[np.argsort(p, kind="stable")]) >= 0).all()


def test_fishers_tea_tasting() -> None:
    """Agresti 1990, p. 61: three of four cups right: two-sided p = 0.4857."""
    assert fisher_p(3, 4, 1, 4) == pytest.approx(0.4857, abs=5e-5)
    assert fisher_p(5, 5, 0, 5) == pytest.approx(2 / 252)
    assert fisher_p(0, 5, 0, 5) == 1


def test_noethers_number_of_runs() -> None:
    """P(X > Y) = 0.7, that is delta 0.4: (1.960 + 0.842)^2 / (12 / 4 * 0.04) = 65.4 in all."""
    assert 2 * runs_to_differ(0.4, 0.05) == pytest.approx(65.4, abs=0.05)
    assert runs_to_differ(0.0, 0.05) == math.inf


def test_runs_to_be_equivalent() -> None:
    """Ratio 1, each run's sd 5 %: (1.960 + 1.282)^2 * 0.005 / ln(1.1)^2 = 5.78."""
    assert runs_to_be_equivalent(0, 0.005, 0.1, 0.05) == pytest.approx(5.78, abs=0.01)
    assert runs_to_be_equivalent(math.log(1.2), 0.005, 0.1, 0.05) == math.inf


def test_least_more_runs() -> None:
    assert least_more_runs(3, 3, 0.05) == 1  # 4 and 4 runs reach 2 / 70
    assert least_more_runs(5, 5, 0.05) == 0
    assert least_more_runs(5, 4, 0.05, least=9.5) == 6
    assert least_more_runs(5, 5, 0.05, least=math.inf) is None


def test_ratio_interval_covers_at_small_numbers_of_runs() -> None:
    """Log-normal runs, the one group 1.2 times the other: the exact level, 4,000 rows, +-1 %."""
    rng = np.random.default_rng(3)
    for size, scatter, held in ((5, 0.1, 1 - 8 / 252), (5, 0.5, 1 - 8 / 252), (4, 0.3, 1 - 2 / 70)):
        rows = 1.2 * np.exp(rng.normal(0, scatter, (4000, size)))
        others = np.exp(rng.normal(0, scatter, (4000, size)))
        found = [ratio_interval(*each, 0.05) for each in zip(rows, others, strict=True)]
        hits = [one is not None and one[0] <= 1.2 <= one[1] for one in found]
        assert np.mean(hits) == pytest.approx(held, abs=0.01)
    assert ratio_interval(rows[0][:3], others[0][:3], 0.05) is None


@given(TIMES, TIMES, st.sampled_from((0.25, 8.0)))
def test_ratio_and_interval_do_not_depend_on_the_unit(
    one: list[float], other: list[float], factor: float
) -> None:
    sample, base = np.array(one), np.array(other)
    ratio = median_ratio(sample, base)
    assert ratio == pytest.approx(float(np.exp(np.median(np.log(sample[:, None] / base)))))
    assert median_ratio(factor * sample, base * factor) == pytest.approx(ratio)
    found = ratio_interval(sample, base, 0.3), ratio_interval(factor * sample, factor * base, 0.3)
    assert found[0] == (found[1] and pytest.approx(found[1]))


RUNS = st.lists(st.sampled_from((0.0, 1.0, 2.0, 3.0, 5.0, 7.0, math.inf)), min_size=4, max_size=5)


@given(RUNS, RUNS)
def test_the_interval_holds_the_ratios_that_are_not_rejected(
    one: list[float], other: list[float]
) -> None:
    """Against the test of each ratio between two that any pair of runs has."""
    sample, base = np.array(one), np.array(other)
    found = ratio_interval(sample, base, 0.1)
    for ratio in np.geomspace(0.01, 100, 98):
        kept = permutation_p(sample[None] / ratio, base[None])[0] > 0.1
        assert kept == (found is not None and found[0] < ratio < found[1]), ratio


def test_ratio_and_interval_of_runs_all_alike_and_of_runs_without_a_stall() -> None:
    alike, none, failed = np.full(5, 5.0), np.zeros(5), np.full(5, math.inf)
    assert median_ratio(alike, alike) == 1 and ratio_interval(alike, alike, 0.05) == (1, 1)
    assert median_ratio(none, none) is None and median_ratio(failed, failed) is None
    for one, other in ((none, alike), (failed, alike), (alike, none), (-failed, alike)):
        assert median_ratio(one, other) is None and ratio_interval(one, other, 0.05) is None
    some = np.array((0, 0, 5, 6, 7.0))
    assert median_ratio(some, np.array((5, 5, 6, 6, 7.0))) == pytest.approx(5 / 6)
    assert ratio_interval(some, np.array((5, 5, 6, 6, 7.0)), 0.05) == pytest.approx((0, 6 / 5))


@given(st.lists(st.sampled_from((0.001, 0.004, 0.01, 0.02, 0.03, 0.2)), min_size=1, max_size=6))
def test_holms_factors_are_those_that_decided(values: list[float]) -> None:
    p = np.array(values)
    assert ((p * holm_factors(p, 0.05) <= 0.05) == (holm(p) <= 0.05)).all()
    assert holm_factors(np.array([0.02, 0.3, 0.001]), 0.05).tolist() == [2, 1, 3]


def test_equivalence_needs_a_ratio_surely_inside_the_margin() -> None:
    base = row(100, 101, 102, 103, 104)
    # 1.1 times lower, no run of one reaches the other: the smaller p of 5 and 5 runs, doubled.
    assert equivalence_p(base, base + 0.5, 0.1)[0] == pytest.approx(2 / 252)
    assert equivalence_p(1.1 * base, base, 0.1)[0] > 0.5
    assert equivalence_p(base / 1.1, base, 0.1)[0] > 0.5
    assert equivalence_p(1.3 * base, base, 0.1)[0] == 1


def test_equivalence_of_runs_that_never_stalled() -> None:
    """Five runs without a stall: at most 0.5^5 if the median run had one."""
    assert equivalence_p(np.zeros((1, 5)), np.zeros((1, 7)), 0.1)[0] == 1 / 32


@given(TIMES, TIMES)
def test_equivalence_is_symmetric(one: list[float], other: list[float]) -> None:
    there = equivalence_p(row(*one), row(*other), 0.25)[0]
    assert there == pytest.approx(equivalence_p(row(*other), row(*one), 0.25)[0], rel=0.3)
    assert 0 < there <= 1


@pytest.mark.parametrize("runs", [(5, 5), (6, 6), (5, 7), (10, 10)])
def test_spread_holds_its_level(runs: tuple[int, int]) -> None:
    """Of 600 pairs of the same kernel at most 5 % (+ 1.9 %, 97.5 % sure) may differ."""
    rng = np.random.default_rng(5)
    sample, base = rng.lognormal(4, 0.3, (600, runs[0])), rng.lognormal(4, 0.3, (600, runs[1]))
    assert np.mean(spread_p(sample, base) <= 0.05) <= 0.069


def test_spread_that_grew_is_found_and_a_mean_that_grew_is_none() -> None:
    rng = np.random.default_rng(6)
    base = rng.lognormal(4, 0.02, (200, 5))
    assert np.mean(spread_p(rng.lognormal(4, 0.32, (200, 5)), base) <= 0.05) > 0.8
    assert np.mean(spread_p(10 * rng.lognormal(4, 0.02, (200, 5)), base) <= 0.05) <= 0.075


def test_spread_never_beats_its_smallest_p() -> None:
    apart = spread_p(row(1, 10, 100, 1000, 10000), row(100, 100.1, 100.2, 100.3, 100.4))
    assert apart[0] == pytest.approx(attainable_spread_p(5, 5)) == pytest.approx(2 / 252)
    assert spread_p(row(1), row(1, 2))[0] == 1
    assert spread_p(np.zeros((1, 5)), np.zeros((1, 5)))[0] == 1
