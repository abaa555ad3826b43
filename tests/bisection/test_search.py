# SPDX-License-Identifier: GPL-2.0-or-later
"""The posterior over commits by known answers, and what a search does with it."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bisection import search
from bisection.choice import Expectation, builds_there, stretches
from bisection.evidence import Evidence, Floats, logarithms
from bisection.posterior import OFFSET_WEIGHTS, OFFSETS, SCATTERS, posterior
from bisection.steps import window

GOOD, BAD = [100.0, 104.0, 97.0, 101.0, 99.0], [200.0, 191.0, 207.0, 203.0, 198.0]


def by_hand(evidence: Evidence) -> Floats:
    """The same posterior from the whole covariance of all runs, integrated over the two levels."""
    rows = [
        (place, value)
        for place, values in sorted(logarithms(evidence.figures).items())
        for value in values
    ]
    places = np.array([place for place, _ in rows])
    y = np.array([value for _, value in rows])
    total = np.zeros(evidence.last + 1)
    for (i, scatter), (j, offset) in itertools.product(enumerate(SCATTERS), enumerate(OFFSETS)):
        del i
        same = places[:, None] == places[None, :]
        covariance = scatter**2 * np.eye(len(y)) + offset**2 * same
        inverse = np.linalg.inv(covariance)
        _, log_determinant = np.linalg.slogdet(covariance)
        for step in range(1, evidence.last + 1):
            if step in evidence.innocent:
                continue
            x = np.stack([places < step, places >= step], axis=1).astype(float)
            inner = x.T @ inverse @ x
            beta = np.linalg.solve(inner, x.T @ inverse @ y)
            rest = y - x @ beta
            log = -0.5 * (log_determinant + rest @ inverse @ rest)
            log -= 0.5 * np.linalg.slogdet(inner)[1]
            total[step] += OFFSET_WEIGHTS[j] * math.exp(log)
    found: Floats = total / total.sum()
    return found


def test_the_posterior_is_that_of_the_whole_covariance() -> None:
    evidence = Evidence(
        8, {0: GOOD[:3], 3: [105.0, 131.0], 5: [160.0], 8: BAD[:2]}, innocent=frozenset({2})
    )
    assert posterior(evidence).commits() == pytest.approx(by_hand(evidence), abs=1e-9)


def test_one_run_beside_ends_that_are_known_tells_which_side() -> None:
    known = posterior(Evidence(10, {0: GOOD, 10: BAD, 5: [102.0]}))
    assert known.gaps[1] > 0.9
    assert known.commits()[1:6].sum() == pytest.approx(known.gaps[0])


def test_a_kernels_own_offset_keeps_a_small_step_open() -> None:
    """A step as large as kernels differ by anyway may be none, however often each is run."""

    def seven(level: float) -> list[float]:
        return [level + n for n in range(-3, 4)]

    evidence = Evidence(3, {0: seven(100), 1: seven(110), 2: seven(125), 3: seven(117)})
    assert search.ranges(evidence, posterior(evidence))[0].probability < 0.9
    # Of twice as much nobody doubts.
    evidence = Evidence(3, {0: seven(100), 1: seven(110), 2: seven(225), 3: seven(217)})
    assert search.step(evidence).word == "found"


def test_a_run_that_failed_is_the_worst() -> None:
    hung = [math.inf, math.inf, 101.0, math.inf, math.inf]
    decision = search.step(Evidence(2, {0: GOOD, 1: GOOD, 2: hung}))
    assert decision.word == "found" and decision.ranges[0].first == 2
    # Also where nothing but that tells them apart, and where it is but half of the runs.
    fine = [math.inf, 101.0, 99.0, math.inf, 102.0]
    decision = search.step(Evidence(3, {0: GOOD * 3, 1: GOOD * 3, 2: fine * 3, 3: fine * 3}))
    assert decision.word == "found" and decision.ranges[0].first == 2
    # One failure is weighed against what all other runs say.
    figures = {0: GOOD, 1: [100.0, 98.0, math.inf], 2: BAD, 3: BAD}
    assert search.ranges(Evidence(3, figures), posterior(Evidence(3, figures)))[0].first == 2
    # Where every run fails at the bad end, the middle is looked at all the same.
    decision = search.step(Evidence(100, {0: GOOD, 100: [math.inf] * 5}))
    assert decision.word == "run" and 30 < decision.run < 70


def test_runs_without_a_stall_have_a_logarithm() -> None:
    assert np.isfinite(logarithms({0: [0.0, 0.0]})[0]).all()
    assert np.isfinite(logarithms({0: [0.0, math.inf]})[0]).all()


def test_the_first_kernel_is_in_the_middle() -> None:
    decision = search.step(Evidence(1000, {0: GOOD, 1000: BAD}))
    assert decision.word == "run" and decision.run == 500
    assert 0.8 * math.log(2) < decision.tells < math.log(2)


def test_a_second_run_beside_one_under_way_is_elsewhere() -> None:
    evidence = Evidence(1000, {0: GOOD, 1000: BAD})
    decision = search.step(evidence, [500])
    assert (decision.word == "run" and decision.run in range(200, 301)) or decision.run in range(
        700, 801
    )
    assert sorted(search.likely_next(evidence, [500])) == [250, 750]


def test_untestable_commits_are_no_answer_but_a_range_of_them_is() -> None:
    """Nothing between 4 and 8 can be run: it is one of 5, 6, 7 and 8, and said so."""
    evidence = Evidence(12, {0: GOOD, 4: GOOD[:3], 8: BAD[:3], 12: BAD}, frozenset({5, 6, 7}))
    decision = search.step(evidence)
    assert decision.word == "found"
    assert (decision.ranges[0].first, decision.ranges[0].last) == (5, 8)
    # One of them that may still be run is run.
    evidence = Evidence(12, {0: GOOD, 4: GOOD[:3], 8: BAD[:3], 12: BAD}, frozenset({5, 7}))
    assert search.step(evidence).run == 6


def test_a_kernel_that_is_the_one_before_it_is_no_answer() -> None:
    evidence = Evidence(4, {0: GOOD, 1: GOOD, 3: BAD, 4: BAD}, frozenset({2}), frozenset({2}))
    decision = search.step(evidence)
    assert decision.word == "found"
    assert (decision.ranges[0].first, decision.ranges[0].last) == (3, 3)


def test_of_two_steps_the_larger_one_is_searched_between_kernels_of_its_own() -> None:
    """Kernels from 30 to 69 are between good and bad: 1.4 times at 30, and twice at 70."""
    figures = {0: GOOD, 20: GOOD[:2], 29: GOOD[:2], 30: [140.0, 141.0], 50: [139.0, 142.0]}
    figures |= {60: [140.0], 80: [282.0, 279.0], 100: [280.0, 277.0, 284.0]}
    assert window(Evidence(100, figures)) == (30, 100)
    decision = search.step(Evidence(100, figures))
    assert decision.word == "run" and 60 < decision.run < 80
    figures |= {69: [139.0, 141.0], 70: [280.0, 281.0]}
    decision = search.step(Evidence(100, figures))
    assert (decision.word, decision.ranges[0].first) == ("found", 70)
    assert window(Evidence(10, {0: GOOD, 10: BAD, 4: GOOD, 5: BAD, 6: BAD, 7: BAD})) == (0, 10)


def test_it_gives_up_after_so_many_runs() -> None:
    decision = search.step(Evidence(100, {0: GOOD, 100: BAD}), most_runs=10)
    assert (decision.word, decision.why) == ("unsure", "10 runs were not enough")


def test_ends_that_are_alike_end_unsure() -> None:
    figures = {0: GOOD, 1: GOOD, 2: GOOD, 3: GOOD}
    for place in figures:
        figures[place] = figures[place] + figures[place]
    decision = search.step(Evidence(3, figures))
    assert decision.word in ("run", "unsure")
    assert decision.ranges[0].probability < search.SURE


def test_a_stretch_goes_on_for_as_long_as_it_is_known() -> None:
    evidence = Evidence(100, {0: GOOD, 100: BAD, 50: GOOD}, frozenset({20, 23, 70}))
    assert list(stretches(evidence)) == [(20, 23), (70, 70)]
    assert builds_there(evidence, 50) == 1.0
    assert builds_there(evidence, 24) < builds_there(evidence, 27) < builds_there(evidence, 40)
    assert builds_there(evidence, 27) == pytest.approx(0.5)


def test_commits_left_are_those_that_hold_the_step_with_95_percent() -> None:
    assert search.step(Evidence(100, {0: GOOD, 100: BAD})).left == 95
    assert search.step(Evidence(100, {0: GOOD, 9: GOOD, 10: BAD, 100: BAD})).left == 1


@st.composite
def evidences(draw: st.DrawFn) -> Evidence:
    last = draw(st.integers(1, 60))
    figure = st.one_of(st.floats(0, 1e5), st.just(math.inf))
    runs = st.lists(figure, min_size=1, max_size=6)
    figures = draw(st.dictionaries(st.integers(0, last), runs, max_size=12))
    figures |= {0: draw(runs), last: draw(runs)}
    others = st.integers(1, last).filter(lambda place: place not in figures)
    untestable = draw(st.frozensets(others, max_size=8)) if len(figures) <= last else frozenset()
    some = sorted(untestable)
    innocent = frozenset(some[: len(some) // 2])
    return Evidence(last, figures, untestable, innocent)


@settings(max_examples=150, deadline=None)
@given(evidences(), st.lists(st.integers(1, 59), max_size=2))
def test_whatever_was_run_there_is_one_thing_to_do(evidence: Evidence, busy: list[int]) -> None:
    known = posterior(evidence)
    shares = known.commits()
    assert shares.sum() == pytest.approx(1) and (shares >= 0).all()
    assert not shares[[0, *evidence.innocent]].any()
    pending = sorted({place for place in busy if place < evidence.last})
    decision = search.step(evidence, pending)
    if decision.word == "run":
        assert evidence.testable(decision.run)
        assert decision.tells >= -1e-9
    else:
        assert decision.word == "unsure" or decision.ranges[0].probability >= search.SURE
    for one in search.likely_next(evidence, pending):
        assert evidence.testable(one) and one not in evidence.figures


def test_what_a_run_tells_is_never_more_than_what_is_not_known() -> None:
    known = posterior(Evidence(64, {0: GOOD, 64: BAD, 30: [130.0]}))
    shares = known.commits()
    entropy = -(shares[shares > 0] * np.log(shares[shares > 0])).sum()
    tells = Expectation(known).tells(range(65))
    assert (tells >= -1e-9).all() and tells.max() < entropy
    # A run of a kernel next to the ends tells next to nothing.
    assert tells[1] < 0.3 * tells.max() and tells[63] < 0.3 * tells.max()
