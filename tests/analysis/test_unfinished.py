# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs that were not done at their limit: what is known of them, and what no verdict may claim."""

import json
import math
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.figures.metrics import (
    BY_KEY,
    METRICS,
    PRIMARY,
    counted,
    failed,
    measure,
    unfinished,
    whole,
)
from analysis.reading.latency_log import Floats
from analysis.reading.load import load_campaign
from analysis.text import compare_text, summary_files
from analysis.text.verdict_table import direction_word, verdict_rows
from analysis.trends.trend import find_trend
from analysis.verdicts import export, junit
from analysis.verdicts.compare import compare
from analysis.verdicts.compared import Compared
from analysis.verdicts.fail_on import unwanted
from analysis.verdicts.judge import Pair, judge
from analysis.verdicts.statistics import (
    bounded_ratio,
    cliffs_delta,
    doubled_ranks,
    equivalence_p,
    median_ratio,
    permutation_p,
    ratio_bounds,
    ratio_interval,
)
from analysis.verdicts.verdict import Comparison, Limited, Sample
from benchmarks.synthetic_results.make import line_log
from benchmarks.verdicts.simulate import contradicts
from tests.support.verdicts import campaign, cut_at_the_limit, end_after, stalling_run

# A figure, and whether it is at least so much. inf: the run failed.
VALUE = st.one_of(st.integers(0, 6).map(float), st.floats(0.01, 1e4), st.just(math.inf))
RUN = st.tuples(VALUE, st.booleans()).map(lambda one: (one[0], one[1] and math.isfinite(one[0])))
GROUP = st.lists(RUN, min_size=1, max_size=6)
Runs = Sequence[tuple[float, bool]]


def row(*values: float) -> Floats:
    return np.array([values], dtype=np.float64)


def sides(runs: Runs) -> tuple[Floats, Floats]:
    """At least, at most."""
    least = row(*(value for value, _ in runs))
    return least, row(*(math.inf if cut else value for value, cut in runs))


def sample(*runs: tuple[float, bool]) -> Sample:
    cut = tuple(cut for _, cut in runs)
    return Sample(tuple(value for value, _ in runs), cut=cut if any(cut) else ())


def done(*values: float) -> list[tuple[float, bool]]:
    return [(value, False) for value in values]


def cut(*values: float) -> list[tuple[float, bool]]:
    return [(value, True) for value in values]


def one(base: Runs, other: Runs, level: float = 0.05) -> Comparison:
    return judge([Pair(PRIMARY, "b", sample(*base), sample(*other))], level=level, margin=0.1)[0]


def test_gehans_scores_by_hand() -> None:
    """1, 3, 3, at least 2, at least 5: what is surely lower less what is surely higher."""
    low, high = sides([*done(1, 3, 3), *cut(2, 5)])
    # 1 is below all; each 3 above 1, below the last; at least 2: above 1; at least 5: above three.
    assert (doubled_ranks(low, high) - 6).tolist() == [[-4, 0, 0, 1, 3]]


def test_p_by_hand() -> None:
    """Four done runs of the baseline below all: scores -9, -7, -5, -3 and six times 4."""
    base, other = sides([*done(1, 2, 3, 4), *cut(5)]), sides(cut(6, 7, 8, 9, 10))
    p = permutation_p(other[0], base[0], "two-sided", other[1], base[1])
    # All four are in one of the two groups: in 6 of the 252 divisions in that one.
    assert p[0] == pytest.approx(2 * 6 / 252)
    assert cliffs_delta(other[0], base[0], other[1], base[1])[0] == 20 / 25


@given(st.lists(VALUE, min_size=1, max_size=6), st.lists(VALUE, min_size=1, max_size=6))
def test_of_runs_that_were_done_it_is_the_same_test(
    first: list[float], second: list[float]
) -> None:
    one, other = row(*first), row(*second)
    for alternative in ("two-sided", "less", "greater"):
        p = permutation_p(one, other, alternative)
        assert p == pytest.approx(permutation_p(one, other, alternative, one, other))
    assert cliffs_delta(one, other) == pytest.approx(cliffs_delta(one, other, one, other))
    p = equivalence_p(one, other, 0.1)
    assert p == pytest.approx(equivalence_p(one, other, 0.1, one, other))
    known = ratio_interval(one[0], other[0], 0.05)
    assert known == ratio_interval(one[0], other[0], 0.05, one[0], other[0])
    middle = ratio_bounds(one[0], other[0], one[0], other[0])
    ratio, bound = bounded_ratio(middle, known or (0.0, math.inf))
    assert (ratio, bound) == (median_ratio(one[0], other[0]), "")


@given(GROUP, GROUP)
def test_laws(first: Runs, second: Runs) -> None:
    one, other = sides(first), sides(second)
    p = permutation_p(one[0], other[0], "two-sided", one[1], other[1])[0]
    assert 0 < p <= 1
    swapped = permutation_p(other[0], one[0], "two-sided", other[1], one[1])[0]
    assert p == pytest.approx(swapped)
    delta = cliffs_delta(one[0], other[0], one[1], other[1])[0]
    assert delta == pytest.approx(-cliffs_delta(other[0], one[0], other[1], one[1])[0])
    # Whatever the runs would have come to, delta lies between that of the least and of the most.
    least, most = cliffs_delta(one[0], other[1])[0], cliffs_delta(one[1], other[0])[0]
    assert least - 1e-12 <= delta <= most + 1e-12
    low, high = ratio_bounds(one[0][0], other[0][0], one[1][0], other[1][0])
    known = median_ratio(one[0][0], other[0][0])
    assert known is None or (low <= known * (1 + 1e-12) and known <= high * (1 + 1e-12))


@given(
    st.lists(RUN, min_size=4, max_size=8),
    st.lists(RUN, min_size=4, max_size=8),
    st.sampled_from((0.05, 0.01)),
)
def test_no_interval_contradicts_its_verdict(base: Runs, other: Runs, level: float) -> None:
    found = one(base, other, level)
    assert not contradicts(found)
    if found.verdict == "regressed":
        assert found.bound in ("", ">=") and (found.ratio is None or found.ratio >= 1)
    if found.verdict == "improved":
        assert found.bound in ("", "<=") and (found.ratio is None or found.ratio <= 1)
    if found.verdict == "equivalent":
        assert any(not is_cut for _, is_cut in other)


def test_a_run_that_was_cut_is_never_better_than_a_larger_one_that_was_done() -> None:
    """Cut at 60 before it was done, a run might have come to anything: no improvement."""
    base = done(100, 101, 102, 103, 104)
    as_done, as_cut = one(base, done(60, 61, 62, 63, 64)), one(base, cut(60, 61, 62, 63, 64))
    assert as_done.verdict == "improved" and as_done.p == pytest.approx(2 / 252)
    assert as_cut.verdict == "undecided" and as_cut.p == 1 and as_cut.delta == 0
    assert as_cut.ratio == pytest.approx(62 / 102)
    assert (as_cut.bound, as_cut.high) == (">=", None)


def test_runs_cut_above_the_baseline_regressed_at_least_so_much() -> None:
    found = one(done(100, 101, 102, 103, 104), cut(200, 201, 202, 203, 204))
    assert found.verdict == "regressed" and found.p == pytest.approx(2 / 252)
    assert (found.bound, found.high) == (">=", None)
    assert found.ratio == pytest.approx(202 / 102, rel=1e-3)
    assert found.low == pytest.approx(201 / 104, rel=0.02)
    assert found.why.startswith("at least 202.0 s a run against 102.0 s (at least 1.98 times")
    turned = one(cut(200, 201, 202, 203, 204), done(100, 101, 102, 103, 104))
    assert (turned.verdict, turned.bound, turned.low) == ("improved", "<=", None)
    assert "102.0 s a run against at least 202.0 s (at most 0.50 times" in turned.why


def test_what_neither_side_was_done_with_cannot_be_told_apart() -> None:
    found = one(cut(*range(100, 110)), cut(*range(200, 210)))
    assert (found.verdict, found.p, found.ratio) == ("undecided", 1, None)
    assert found.none_ended and not found.all_failed and found.more_runs is None
    # A run that failed is not better than one that was cut, nor surely worse.
    assert one(done(*[math.inf] * 5), cut(*range(5))).p == 1


def test_without_a_stall_a_run_that_was_cut_is_not_equivalent() -> None:
    assert one(done(*[0.0] * 6), done(*[0.0] * 6)).verdict == "equivalent"
    assert one(done(*[0.0] * 6), [*done(*[0.0] * 5), *cut(0.0)]).verdict == "undecided"


LIMIT = 120.0  # s


def to_limit(
    base: Runs, other: Runs, lines: tuple[float, float] = (900, 1000), level: float = 0.05
) -> Comparison:
    """Compared up to the same limit, by which the runs of either had printed so many lines."""
    both = zip((base, other), lines, strict=True)
    sides = [
        replace(sample(*runs), limited=Limited(LIMIT, many, 0.0) if many else None)
        for runs, many in both
    ]
    return judge([Pair(PRIMARY, "b", *sides)], level=level, margin=0.1)[0]


def test_where_no_run_was_done_the_time_up_to_the_limit_is_compared() -> None:
    """As if the values were exact: 100 to 104 s against 60 to 64 s, no overlap, p = 2 / 252."""
    limited = to_limit(cut(100, 101, 102, 103, 104), cut(60, 61, 62, 63, 64))
    exact = one(done(100, 101, 102, 103, 104), done(60, 61, 62, 63, 64))
    assert limited.verdict == exact.verdict == "improved" and limited.p == pytest.approx(2 / 252)
    figures = [
        (each.ratio, each.bound, each.low, each.high, each.delta) for each in (limited, exact)
    ]
    assert figures[0] == figures[1] and limited.limit_s == LIMIT and exact.limit_s is None
    assert limited.why == (
        "62.0 s a run against 102.0 s in the first 120 s (0.61 times, interval 0.59 to 0.63), "
        "p = 0.0079 after Holm, 5 runs each; no run of either was done by then; the variant had "
        "printed 1,000 lines, the baseline 900"
    )


def test_what_printed_fewer_lines_up_to_the_limit_is_not_better() -> None:
    few, many = cut(60, 61, 62, 63, 64), cut(100, 101, 102, 103, 104)
    for comparison in (to_limit(many, few, (900, 800)), to_limit(few, many, (800, 900))):
        assert comparison.verdict == "undecided" and comparison.doubt and comparison.differs
        assert (comparison.more_runs, comparison.least_runs) == (None, None)
        assert comparison.why.endswith(
            "undecided (a longer limit: --timeout), since the better one had printed fewer lines"
        )
    assert to_limit(few, many, (900, 800)).verdict == "regressed"
    assert to_limit(many, few, (800, 800)).verdict == "improved"


def test_what_only_freezes_later_is_not_better() -> None:
    late, early = sample(*cut(60, 61, 62, 63, 64)), sample(*cut(100, 101, 102, 103, 104))
    for base_late, late_then, verdict in (
        (91.4, 60.0, "improved"),
        (0.4, 0.9, "improved"),  # neither is frozen any more
        (91.4, 90.5, "undecided"),
        (100.0, 100.0, "undecided"),  # the limit makes them alike
        (91.4, 99.5, "undecided"),
    ):
        base = replace(early, limited=Limited(LIMIT, 900, base_late))
        other = replace(late, limited=Limited(LIMIT, 1000, late_then))
        (comparison,) = judge([Pair(PRIMARY, "b", base, other)], level=0.05, margin=0.1)
        assert comparison.verdict == verdict and bool(comparison.doubt) == (verdict == "undecided")
        assert direction_word(comparison) == ("better?" if comparison.doubt else "better")
    assert comparison.why.endswith(
        "undecided (a longer limit: --timeout), since the better one was frozen for 99.5 % of the "
        "second half of that time, the other for 91.4 %"
    )


def test_a_limit_makes_all_alike_so_nothing_is_equivalent_up_to_it() -> None:
    values = (100, 101, 102, 103, 104, 105)
    assert one(done(*values), done(*values)).verdict == "equivalent"
    comparison = to_limit(cut(*values), cut(*values))
    assert comparison.verdict == "undecided" and not comparison.none_ended and comparison.more_runs
    assert comparison.why.endswith(
        "more than 100 more runs of each would probably decide, "
        "a longer limit (--timeout) perhaps sooner"
    )
    apart = to_limit(cut(*values), cut(*(value + 2 for value in values)))
    assert apart.verdict == "undecided" and apart.why.endswith(" would probably decide")


def test_runs_that_failed_are_worse_than_those_that_went_on_to_the_limit() -> None:
    going = cut(100, 101, 102, 103, 104)
    comparison = to_limit(going, [*done(*[math.inf] * 4), *cut(110)], (1000, 900))
    assert comparison.verdict == "regressed" and comparison.p == pytest.approx(2 / 252)
    # Of a variant whose runs all failed nobody knows how far it came.
    assert to_limit(going, done(*[math.inf] * 5), (900, 0)).p == 1


def test_what_is_not_compared_up_to_a_limit() -> None:
    few, many = sample(*cut(60, 61, 62, 63, 64)), sample(*cut(100, 101, 102, 103, 104))
    some = replace(many, limited=Limited(LIMIT, 9, 0.0))
    for other in (None, Limited(60.0, 9, 0.0)):
        pair = Pair(PRIMARY, "b", some, replace(few, limited=other))
        (comparison,) = judge([pair], level=0.05, margin=0.1)
        assert (comparison.verdict, comparison.p, comparison.limit_s) == ("undecided", 1, None)
        assert comparison.none_ended
    # When they were ended says nothing of a kernel.
    ends = replace(few, limited=Limited(LIMIT, 9, 0.0))
    (comparison,) = judge([Pair(BY_KEY["elapsed"], "b", some, ends)], level=0.05, margin=0.1)
    assert (comparison.p, comparison.limit_s) == (1, None)


@given(
    st.lists(RUN, min_size=4, max_size=8),
    st.lists(RUN, min_size=4, max_size=8),
    st.sampled_from(((1, 2), (2, 1), (1, 1))),
)
def test_up_to_the_limit_no_interval_contradicts_its_verdict(
    base: Runs, other: Runs, lines: tuple[float, float]
) -> None:
    comparison = to_limit(base, other, lines)
    assert not contradicts(comparison)
    assert comparison.verdict != "equivalent" and comparison.bound == ""
    swapped = to_limit(other, base, lines[::-1])
    turn = {"improved": "regressed", "regressed": "improved", "undecided": "undecided"}
    assert swapped.verdict == turn[comparison.verdict]


def at_the_limit(folder: Path) -> Compared:
    """The verdicts of this campaign, whose programs print each 0.1 s and are ended at LIMIT."""
    cut_at_the_limit(folder, LIMIT)
    for log in folder.glob("*/*/latency-gitk-1.log"):
        lines = [line.split() for line in log.read_text().splitlines() if "[end]" not in line]
        gaps = [float(gap) for _, gap, *_ in lines]
        gaps += [0.1] * round((LIMIT - math.fsum(gaps)) / 0.1)
        log.write_text(line_log([(gap, "pass 1 commits") for gap in gaps], 0.0))
    return compare(load_campaign(folder))


def test_a_campaign_without_a_run_that_was_done_has_verdicts_on_the_first_seconds(
    tmp_path: Path,
) -> None:
    bad, good = [100.0, 101.0, 102.0, 103.0, 104.0], [60.0, 61.0, 62.0, 63.0, 64.0]
    judged = at_the_limit(campaign(tmp_path / "c", {"a": bad, "b": good}))
    assert judged.primary["b"].verdict == "improved" and judged.sure
    sentence = judged.sentences["b"]
    assert sentence.startswith("b stalls less than a in the first 120 s: frozen for ")
    assert "All its stalls: 62.0 s a run against 102.0 s in the first 120 s (0.61 times" in sentence
    assert "the variant had printed 541 lines, the baseline 141." in sentence
    assert "not done at the" not in sentence
    (note,) = (note for note in judged.notes if note.startswith("Compared up to the limit"))
    assert note.endswith("baseline was done: b. That is no verdict on whole runs.")
    rows = {cells[0]: cells for cells in verdict_rows(judged, ("mean", "ratio"))}
    assert rows["b"][1:] == [">=62.0", "0.61 (0.59-0.63)"]
    assert "0.61x better" in compare_text.text(judged)
    (_, told) = json.loads(export.json_text(judged))["variants"]
    assert told["primary"]["limit_s"] == LIMIT
    # One run that was done: what the others would have come to counts again.
    status = tmp_path / "c" / "b" / "3" / "status.json"
    status.write_text(status.read_text().replace("unfinished", "completed"))
    again = compare(load_campaign(tmp_path / "c")).primary["b"]
    assert (again.verdict, again.limit_s) == ("undecided", None)


def test_what_freezes_later_or_is_slower_is_named(tmp_path: Path) -> None:
    """Known answers: 201, 601 and 101 lines; frozen for 75, 100 and 0 % of the second minute."""
    gaps = {
        "early": [*50 * [0.1], 100.0],
        "late": [*600 * [0.1], 60.0],
        "slow": [0.9, 30.0, *99 * [0.9]],
    }
    for name, lengths in gaps.items():
        for number in range(1, 6):
            run = stalling_run(tmp_path / "c" / name / str(number), 1.0)
            some = [length + number / 1000 * (length > 1) for length in lengths]
            log = line_log([(length, "pass 1 commits") for length in some], 0.0)
            (run / "latency-gitk-1.log").write_text(log)
    judged = at_the_limit(tmp_path / "c")
    limited = [judged.samples["stalled"][name].limited for name in gaps]
    figures = [(each.lines, round(each.late)) for each in limited if each]
    assert figures == [(201, 75), (601, 100), (101, 0)]
    for name, doubt in (("late", "freezes later"), ("slow", "is slower")):
        assert judged.primary[name].verdict == "undecided" and judged.primary[name].differs
        assert judged.sentences[name].startswith(
            f"{name} stalls less than early in the first 120 s, but perhaps it only {doubt}: frozen"
        )
    turned = compare(load_campaign(tmp_path / "c"), baseline="late").sentences["early"]
    assert turned.startswith(
        "early stalls more than late in the first 120 s, but perhaps late only freezes later: "
    )


def test_up_to_a_limit_runs_that_failed_are_counted_and_the_ranks_named(tmp_path: Path) -> None:
    runs = {"a": [100.0 + n for n in range(5)], "b": [101.5 + n for n in range(5)]}
    folder = campaign(tmp_path / "c", runs)
    at_the_limit(folder)
    for number in range(2, 6):
        status = folder / "b" / str(number) / "status.json"
        status.write_text(status.read_text().replace("unfinished", "hung"))
    again = compare(load_campaign(folder))
    assert again.primary["b"].limit_s == LIMIT and again.primary["b"].verdict == "regressed"
    sentence = again.sentences["b"]
    assert sentence.startswith("By the ranks of the runs, a failed one being the worst, b stalls ")
    assert "the means of the runs that did not fail go the other way" in sentence
    assert "4 of its 5 runs failed, of a's 0 of 5" in sentence
    # A damaged status does not end the comparison.
    for status in folder.glob("*/*/status.json"):
        end_after(status, 0.0)
    assert compare(load_campaign(folder)).primary["b"].limit_s is None


def test_without_a_value_there_is_no_limit_to_compare_up_to() -> None:
    """As of a workload whose primary metric says nothing of a run that was not done."""
    some, none = sample(*cut(60, 61)), Sample((math.inf,), missing=4, cut_missing=4)
    pair = Pair(
        PRIMARY, "b", *(replace(side, limited=Limited(LIMIT, 9, 0.0)) for side in (some, none))
    )
    assert judge([pair], level=0.05, margin=0.1)[0].limit_s is None


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> Compared:
    folder = tmp_path_factory.mktemp("unfinished") / "c"
    for number, stalled in enumerate((60.0, 62.0, 63.0, 64.0, 66.0), 1):
        stalling_run(folder / "a" / str(number), stalled)
        stalling_run(folder / "b" / str(number), 2 * stalled)
        stalling_run(folder / "c" / str(number), stalled + 0.1 * number)
    for variant, number, state in (
        ("b", 2, "unfinished"),
        ("b", 5, "unfinished"),
        ("c", 1, "hung"),
    ):
        status = folder / variant / str(number) / "status.json"
        told = json.loads(status.read_text())
        status.write_text(json.dumps(told | {"state": state, "why": "the gitk's were not done"}))
    return compare(load_campaign(folder))


def test_its_sums_are_at_least_so_much_and_its_shares_are_not_counted(judged: Compared) -> None:
    run = judged.campaign.variants()["b"][1]
    assert unfinished(run) and counted(run) and not failed(run) and not whole(run)
    figures = measure(run)
    known = {metric.key for metric in METRICS if figures[metric.key] is not None}
    assert known == {"stalled", "worst", "elapsed"}
    assert figures["stalled"] == pytest.approx(124)
    of_b = judged.samples["stalled"]["b"]
    assert (of_b.cut, of_b.unfinished, of_b.failed) == ((False, True, False, False, True), 2, 0)
    assert of_b.mean == pytest.approx(126) and of_b.ended == (120.0, 126.0, 128.0)
    shares = judged.samples["share-1"]["b"]
    assert (shares.missing, shares.unfinished, shares.cut) == (2, 2, ())


def test_it_is_told_in_each_text(judged: Compared) -> None:
    assert judged.primary["b"].verdict == "regressed"
    sentence = judged.sentences["b"]
    assert sentence.startswith("b stalls more than a: frozen for ")
    assert "% of the time up to the limit, at worst for at least " in sentence
    assert "at least 126.0 s a run against 63.0 s" in sentence
    assert "2 of its 5 runs went on and were not done at the limit." in sentence
    rows = {cells[0]: cells for cells in verdict_rows(judged, ("mean", "ratio", "worst"))}
    assert rows["b"][3].startswith(">=") and not rows["c"][3].startswith(">=")
    assert rows["b"][1] == ">=126.0" and rows["b"][2].startswith(">=2.0")
    said = compare_text.text(judged)
    assert (
        "Not done at their limit (--timeout), sums and counts are at least so much: b/2, b/5."
        in (" ".join(said.split()))
    )
    assert "regressed, 2 unfinished" in said and "undecided, 1 failed" in said
    summary = summary_files.summary(judged.campaign)
    assert re.search(r"^b +2  unfinished ", summary, re.MULTILINE)
    assert ">=124.0 s" in summary


def test_ci_is_told(judged: Compared) -> None:
    assert unwanted(judged, ["failed"]) == ["c failed in 1 of 5 runs (hung)"]
    assert unwanted(judged, ["unfinished"]) == ["b was not done in 2 of 5 runs (unfinished)"]
    assert junit.text(judged).count('<error type="unfinished"') == 2
    found = json.loads(export.json_text(judged))["variants"][1]
    of_b = found["samples"]["stalled"]
    assert (of_b["unfinished"], of_b["failed"]) == (2, 0)
    assert of_b["at_least"] == [False, True, False, False, True]
    assert found["primary"]["bound"] == ">="
    (line,) = (one for one in export.csv_text(judged).splitlines() if one.startswith("b,b,primary"))
    assert "120.0 >=124.0 126.0 128.0 >=132.0" in line


def test_in_a_trend_it_ranks_with_those_that_failed(judged: Compared) -> None:
    trend = find_trend(judged.campaign)
    assert any("b/2, b/5" in note for note in trend.notes if note.startswith("Not done"))
    (track,) = trend.tracks
    of_b = next(point.sample for point in track.points if point.variant == "b")
    assert of_b.most == (120.0, math.inf, 126.0, 128.0, math.inf)
