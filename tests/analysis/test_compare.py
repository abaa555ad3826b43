# SPDX-License-Identifier: GPL-2.0-or-later
"""Verdicts of tiny campaigns, whose figures were worked out by hand."""

import json
import math
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.figures.metrics import PRIMARY
from analysis.reading.load import load_campaign
from analysis.text import compare_text
from analysis.verdicts.compare import compare
from analysis.verdicts.compared import Compared
from analysis.verdicts.judge import Pair, judge, judge_families
from analysis.verdicts.verdict import MANY, Comparison, Sample
from contract.levels import few_runs_warning
from errors import UserError
from tests.support.verdicts import campaign, stalling_run

SUITE = Path(__file__).resolve().parents[2]
BASE: list[float | str] = [60.0, 62.0, 63.0, 64.0, 66.0]
# Mean 31.4; every run lies below every run of BASE.
LESS: list[float | str] = [28.0, 30.0, 31.0, 33.0, 35.0]
# With BASE the ranks 1, 3, 7, 9, 10: sum 30 of 25 expected at the least 15.
LIKE: list[float | str] = [59.0, 61.0, 65.0, 67.0, 68.0]
RUNS = st.lists(st.one_of(st.integers(0, 9).map(float), st.just(math.inf)), min_size=1, max_size=7)


def compared(folder: Path, plan: str = "", **variants: Sequence[float | str]) -> Compared:
    named = {label.replace("_", "."): runs for label, runs in variants.items()}
    return compare(load_campaign(campaign(folder, named, plan)))


def one(base: list[float], sample: list[float], level: float = 0.05) -> Comparison:
    pair = Pair(PRIMARY, "b", Sample(tuple(base)), Sample(tuple(sample)))
    return judge([pair], level=level, margin=0.1)[0]


@given(st.integers(1, 6), st.integers(1, 6), st.integers(1, 40))
def test_runs_that_cannot_give_a_verdict_are_named_with_the_number_that_can(
    runs: int, of_baseline: int, comparisons: int
) -> None:
    def verdicts(of_each: int, first: int) -> set[str]:
        base = Sample(tuple(100.0 + n for n in range(first)))
        clear = Pair(PRIMARY, "b", base, Sample(tuple(1.0 + n for n in range(of_each))))
        return {one.verdict for one in judge([clear] * comparisons, level=0.05, margin=0.1)}

    warning = few_runs_warning([[of_baseline, *[runs] * comparisons]])
    assert bool(warning) == ("improved" not in verdicts(runs, of_baseline))
    if warning:
        enough = int(warning.removesuffix(" of each").rpartition(" ")[2])
        assert verdicts(enough, enough) == {"improved"}
        assert "improved" not in verdicts(enough - 1, enough - 1)


def test_three_variants_by_hand(tmp_path: Path) -> None:
    """Sum of 6.2's ranks 15: 2 of 252 divisions. 6.3: 30, U = 15, 2 x 87 of 252. Holm: x 2, x 1."""
    found = compared(tmp_path, a6_1=BASE, b6_2=LESS, c6_3=LIKE)
    assert found.baseline == "a6.1" and found.variants == ["a6.1", "b6.2", "c6.3"]
    less, like = found.primary["b6.2"], found.primary["c6.3"]
    assert less.p == pytest.approx(2 / 252) and less.p_adjusted == pytest.approx(4 / 252)
    assert like.p == like.p_adjusted == pytest.approx(2 * 87 / 252)
    assert less.delta == -1 and like.delta == pytest.approx(2 * 15 / 25 - 1)
    assert less.ratio == pytest.approx(31 / 62) and like.ratio == pytest.approx(61 / 60)
    assert less.verdict == "improved" and like.verdict == "equivalent"
    assert less.base.mean == pytest.approx(63) and less.base.sd == pytest.approx(math.sqrt(5))
    assert less.sample.sd == pytest.approx(math.sqrt(29.2 / 4)) and less.sample.median == 31
    # Holm leaves 0.025 and 0.05, and U <= 1 and 2 of 25 pairs: 4 and 8 of 252 divisions.
    assert (less.tested, like.tested) == (0.025, 0.05)
    assert (less.low, less.high) == pytest.approx((28 / 64, 35 / 62))
    assert (like.low, like.high) == pytest.approx((61 / 66, 68 / 62))
    assert found.level == 0.05 and found.sure and not found.forced
    sentence = found.sentences["b6.2"]
    # Each run has 5 s of gaps of 0.5 s beside its stall v: frozen for v / (v + 5) of the time.
    assert sentence.startswith(
        "b6.2 stalls less than a6.1: frozen for 86 % of the time, at worst for 35.0 s (a6.1: 93 %, "
        "66.0 s). All its stalls, in 36 s against 68 s: 31.4 s a run against 63.0 s (0.50 times"
    )
    assert sentence.endswith("p = 0.016 after Holm, 5 runs each.")
    assert found.sentences["a6.1"] == (
        "a6.1 (the baseline): frozen for 93 % of the time, at worst for 66.0 s. All its stalls, in "
        "68 s: 63.0 s a run (sd 2.2 s, 5 runs)."
    )


def test_the_other_way_round_it_regressed(tmp_path: Path) -> None:
    found = compared(tmp_path, a=LESS, b=BASE)
    assert found.primary["b"].verdict == "regressed" and found.primary["b"].delta == 1
    assert found.sentences["b"].startswith("b stalls more than a: frozen for 93 % of the time")
    assert ": 63.0 s a run against 31.4 s (2.00" in found.sentences["b"]
    assert found.sure


def test_too_few_runs_never_have_a_verdict(tmp_path: Path) -> None:
    found = compared(tmp_path, a=[10.0, 11.0, 12.0], b=[100.0, 110.0, 120.0])
    b = found.primary["b"]
    assert b.verdict == "undecided" and b.p == pytest.approx(0.1)
    assert "3 and 3 runs cannot reach the level: the smallest p they could give is 0.1, needed" in (
        b.why
    )
    # 4 and 4 give 2 / 70 at the least; how many would decide, the delta of 3 runs does not tell.
    assert b.more_runs is None and b.least_runs == 4 and "would probably" not in b.why
    assert b.why.endswith("with equally many runs it takes 4 of each at least")


def test_one_run_is_a_sign(tmp_path: Path) -> None:
    found = compared(tmp_path, a=[10.0], b=[100.0])
    assert found.primary["b"].verdict == "undecided" and found.primary["b"].smallest == 1
    assert "One run is a sign" in found.sentences["a"]


def test_a_high_p_is_never_no_difference() -> None:
    found = one([50, 60, 70, 80, 90], [51, 61, 69, 81, 88])
    assert found.p is not None and found.p > 0.9
    assert found.verdict == "undecided" and "difference" not in found.why


def test_equivalent_needs_figures_that_hardly_scatter() -> None:
    base = [100, 100.5, 101, 101.5, 102]
    found = one(base, [100.2, 100.7, 101.2, 101.7, 101.9])
    assert found.verdict == "equivalent"
    assert "inside the margin of 10 %" in found.why and "a difference is not shown" in found.why
    assert one(base, [110, 110.5, 111, 111.5, 112]).verdict == "regressed"  # 1.099, but to 1.11
    assert one(base[:3], [100.2, 100.7, 101.2]).verdict == "undecided"  # three runs each


def test_a_sure_difference_inside_the_margin_is_equivalent_and_said_to_be_there() -> None:
    found = one([100, 100.5, 101, 101.5, 102], [104, 104.5, 105, 105.5, 106])
    assert found.differs and found.verdict == "equivalent"
    assert "the small difference is there" in found.why


def test_kernels_that_never_stall() -> None:
    """0.5^5 = 0.031: five runs each say that the typical run does not stall; four do not."""
    assert one([0.0] * 5, [0.0] * 5).verdict == "equivalent"
    assert one([0.0] * 4, [0.0] * 4).verdict == "undecided"
    assert one([0.0] * 4, [0.0] * 4).more_runs == 1
    assert one([0.0] * 5, [0.0] * 5).ratio is None
    found = one([0.0] * 5, [3.0, 4.0, 5.0, 6.0, 7.0])
    assert found.verdict == "regressed" and found.ratio is None and "times" not in found.why
    assert one([3.0, 4.0, 5.0, 6.0, 7.0], [0.0] * 5).verdict == "improved"


def test_failed_runs_are_the_worst_and_compared_by_fisher_too(tmp_path: Path) -> None:
    """Five of five hung: pooled ranks 1 to 5 against five times 8: p 2 / 252 in both tests."""
    found = compared(tmp_path, a=BASE, b=["hung"] * 3 + ["panicked", "oom"])
    b, failures = found.primary["b"], found.failures["b"]
    assert b.p == pytest.approx(2 / 252) and b.verdict == "regressed" and b.ratio is None
    assert (failures.failed, failures.runs, failures.base_failed) == (5, 5, 0)
    assert failures.p == pytest.approx(2 / 252) and failures.verdict == "regressed"
    assert found.sentences["b"] == (
        "b stalls more than a: all of its runs failed, p = 0.0079 after Holm, 5 runs each. "
        "Of a's 5 runs 0 failed (p = 0.0079 after Holm, Fisher's exact test): "
        "a failed run counts as the worst."
    )
    back = compare(found.campaign, baseline="b").sentences
    assert back["b"] == "b (the baseline): all of its 5 runs failed."
    assert "a stalls less than b: all of the baseline's runs failed, p = 0.0079" in back["a"]
    assert "Of its 5 runs 0 failed" in back["a"]
    assert found.spread["b"].p is None and found.secondary["swap-in"]["b"].p is None
    assert any("Failed, counted as the worst: b/1 (hung)" in note for note in found.notes)


def test_better_figures_do_not_hide_a_failed_run(tmp_path: Path) -> None:
    """Ranks 1 to 6 and 13: U = 6 of 49 with 7 and 7 runs, p = 2 x 30 / 3432."""
    base: list[float | str] = [60.0, 61.0, 62.0, 63.0, 64.0, 65.0, 66.0]
    found = compared(tmp_path, a=base, b=[20.0, 21.0, 22.0, 23.0, 24.0, 25.0, "hung"])
    b = found.primary["b"]
    assert b.verdict == "improved"
    assert "of the runs that ended (0.37 times, interval 0.33 to 0.41)" in b.why
    assert found.failures["b"].verdict == "undecided" and found.failures["b"].p == 1
    assert "But 1 of its 7 runs failed, of a's 0 of 7" in found.sentences["b"]
    assert found.sentences["b"].count("failed,") == 1


def test_when_all_runs_of_both_failed_nothing_is_promised(tmp_path: Path) -> None:
    found = compared(tmp_path, a=["hung"] * 5, b=["oom"] * 5)
    assert found.primary["b"].verdict == "undecided" and found.primary["b"].more_runs is None
    assert found.sentences["b"] == (
        "b cannot be told from a: all runs of both failed, p = 1 after Holm, 5 runs each; "
        "more such runs would not decide."
    )
    assert "would probably decide" not in compare_text.text(found)


def test_the_only_run_failed(tmp_path: Path) -> None:
    found = compared(tmp_path, a=["hung"], b=[5.0])
    assert found.sentences["a"] == (
        "a (the baseline): its only run failed. One run is a sign, not a finding."
    )
    assert "the baseline's only run failed" in found.sentences["b"]


def test_ranks_and_means_that_disagree_are_told_by_ranks(tmp_path: Path) -> None:
    """One run of a is an outlier: b's runs have the higher ranks, p 0.02 with ranks 1-6 and 13."""
    low: list[float | str] = [1.0, 1.1, 1.2, 1.3, 1.4, 1.5, 140.0]
    found = compared(tmp_path, a=low, b=[2.0, 2.1, 2.2, 2.3, 2.4, 2.5, 2.6])
    assert found.primary["b"].verdict == "regressed" and (found.primary["b"].ratio or 0) > 1
    assert found.sentences["b"].startswith(
        "By the ranks of the runs b stalls more than a, while the means go the other way because "
        "of single runs: frozen for "
    )
    assert ": 2.3 s a run against 21.1 s (1.77 times" in found.sentences["b"]
    failing = compared(tmp_path / "f", a=LESS * 2, b=[*[20.0] * 3, *["hung"] * 9])
    assert failing.primary["b"].verdict == "regressed"
    assert (
        "a failed one being the worst, b stalls more than a, while the means of the runs"
        in (failing.sentences["b"])
    )


def test_failed_runs_are_infinite_and_end_equivalence_where_they_are_not_rare() -> None:
    base = [100 + i / 10 for i in range(10)]
    assert one(base, base).verdict == "equivalent"
    assert one(base, [*base[:9], math.inf]).verdict == "equivalent"
    assert one(base, [*base[:7], *[math.inf] * 3]).verdict == "undecided"
    assert one(base, [*base[:7], *[math.inf] * 3]).high is None


def test_a_spread_that_grew_is_reported(tmp_path: Path) -> None:
    """The original's 652 s (sd 8) and 692 s (sd 131), five runs each."""
    found = compared(
        tmp_path,
        a=[640.0, 648.0, 652.0, 656.0, 662.0],
        b=[520.0, 610.0, 692.0, 774.0, 864.0],
    )
    assert found.spread["b"].verdict == "regressed" and found.primary["b"].verdict == "undecided"
    assert (
        "For their level its runs scatter more than a's: sd 134.7 s (19 % of the mean) against "
        "8.3 s (1 % of the mean)" in found.sentences["b"]
    )


def test_a_spread_is_told_for_its_level(tmp_path: Path) -> None:
    """zram beside the disk on 6.12: next to no stall, of which the half is chance."""
    found = compared(tmp_path, a=[484.9, 475.7, 411.9, 509.5, 460.5], b=[0.01, 1.2, 1.1, 6.8, 0.01])
    assert found.spread["b"].verdict == "regressed" and found.primary["b"].verdict == "improved"
    assert (
        "scatter more than a's: sd 2.8 s (156 % of the mean) against 36.3 s (8 % of"
        in (found.sentences["b"])
    )


def test_a_mean_that_grew_is_no_spread_that_grew(tmp_path: Path) -> None:
    found = compared(tmp_path, a=[10.0, 11.0, 12.0, 13.0, 14.0], b=[30.0, 33.0, 36.0, 39.0, 42.0])
    assert found.spread["b"].ratio == pytest.approx(3)
    assert found.spread["b"].verdict == "undecided" and found.primary["b"].verdict == "regressed"


def test_holm_needs_more_runs_of_more_variants(tmp_path: Path) -> None:
    """Seven comparisons of 5 and 5 runs, each as clear as can be: 7 x 2 / 252 = 0.056."""
    variants = {"base": BASE, **{f"v{i}": LESS for i in range(7)}}
    found = compare(load_campaign(campaign(tmp_path, variants)))
    v = found.primary["v3"]
    assert v.p_adjusted == pytest.approx(14 / 252) and v.verdict == "undecided" and v.too_few
    assert "the smallest p they could give is 0.0079, needed 0.0071" in v.why
    assert v.more_runs is not None and v.more_runs >= 1


@pytest.mark.parametrize(
    ("suites", "said"),
    [
        ({"a": ["x", "x"], "b": ["x", "x"]}, ""),
        ({"a": ["x", "x"], "b": ["y-dirty", "y-dirty"]}, "looks like a difference"),
        ({"a": ["x", "y"], "b": ["x", "y"]}, "is in their scatter"),
    ],
)
def test_another_suite_is_told(suites: dict[str, list[str]], said: str, tmp_path: Path) -> None:
    folder = campaign(tmp_path, {"a": [5.0, 6.0], "b": [6.0, 7.0]})
    for variant, each in suites.items():
        for number, suite in enumerate(each, 1):
            path = folder / variant / str(number) / "meta.json"
            path.write_text(json.dumps(json.loads(path.read_text()) | {"suite": suite}))
    notes = [one for one in compare(load_campaign(folder)).notes if "of this suite" in one]
    assert len(notes) == bool(said) and all(said in one for one in notes)


def test_runs_that_do_not_count_are_named(tmp_path: Path) -> None:
    folder = campaign(tmp_path, {"a": [5.0, "aborted"], "b": [6.0]})
    stalling_run(folder / "b" / "2", 7.0)
    (folder / "b" / "2" / "status.json").unlink()
    found = compare(load_campaign(folder))
    assert found.samples["stalled"]["a"].values == (5.0,)
    assert any("b/2" in note and "Incomplete" in note for note in found.notes)
    assert any("a/2 (aborted)" in note for note in found.notes)


def test_a_variant_without_a_run_that_counts(tmp_path: Path) -> None:
    found = compared(tmp_path, a=[5.0], b=["aborted"])
    assert found.primary["b"].verdict == "undecided" and found.primary["b"].p is None
    assert found.sentences["b"] == "b cannot be compared: the variant has no run that counts."
    assert found.answers["b"].head == "b cannot be compared:"


def without(log: Path, begins: str) -> None:
    """Lose the lines of the log that begin so."""
    lines = log.read_text().splitlines(keepends=True)
    kept = [line for line in lines if not line.startswith(begins)]
    assert len(kept) < len(lines)
    log.write_text("".join(kept))


def test_a_stall_in_a_damaged_log_is_not_a_better_kernel(tmp_path: Path) -> None:
    folder = campaign(tmp_path, {"a": BASE, "b": BASE})
    for number, stalled in enumerate(BASE, 1):
        log = folder / "b" / str(number) / "latency-gitk-1.log"
        without(log, f"{5 + float(stalled):.3f} {float(stalled):.3f} pass")
    found = compare(load_campaign(folder))
    sample = found.samples["stalled"]["b"]
    assert (sample.values, sample.missing, sample.runs) == ((), 5, 5)
    assert found.primary["b"].verdict == "undecided" and found.primary["b"].p is None
    assert found.sentences["b"] == (
        "b cannot be compared: the variant has 5 runs, none with this figure (the notes say why)."
    )
    text = " ".join(compare_text.text(found).split())
    assert "stalls may be with them: no figures of gaps of: b/1 (gitk-1 60.0 s), b/2 (" in text
    assert re.search(r"b undecided (- )+0 of 5", text)
    alone = compare(load_campaign(folder / "b"))
    only = next(iter(alone.sentences.values()))
    assert only.endswith("has 5 runs, none with this figure (the notes say why).")
    assert "improved" not in text


def test_some_runs_without_the_figure_are_counted_and_said(tmp_path: Path) -> None:
    folder = campaign(tmp_path, {"a": BASE, "b": LESS})
    without(folder / "a" / "2" / "latency-gitk-1.log", "67.000 62.000 pass")
    found = compare(load_campaign(folder))
    assert found.samples["stalled"]["a"].values == (60.0, 63.0, 64.0, 66.0)
    assert found.sentences["a"].endswith("4 runs). 1 of its 5 runs has no such figure.")
    row = next(line for line in compare_text.text(found).splitlines() if line.startswith("a    "))
    assert row.split()[:2] == ["a", "baseline"] and row.split()[-3:] == ["4", "of", "5"]
    assert found.primary["b"].verdict == "improved"  # 2 of 126 divisions


def test_variants_of_one_label_are_told_apart(tmp_path: Path) -> None:
    folder = campaign(tmp_path, {"one": BASE, "two": LESS}, label="same")
    found = compare(load_campaign(folder))
    assert found.labels == {"one": "same (one)", "two": "same (two)"}
    assert found.sentences["two"].startswith("same (two) stalls less than same (one): ")
    for asked in ("two", "same (two)"):
        assert compare(found.campaign, baseline=asked).baseline == "two"
    with pytest.raises(UserError, match="2 variants are called 'same'"):
        compare(found.campaign, baseline="same")


@pytest.mark.parametrize(("blocks", "said"), [(True, True), (False, False)])
def test_runs_that_did_not_take_turns_are_named(tmp_path: Path, blocks: bool, said: bool) -> None:
    orders = {"a": [1, 2, 3], "b": [4, 5, 6]} if blocks else {"a": [1, 4, 5], "b": [2, 3, 6]}
    for label, places in orders.items():
        for number, order in enumerate(places, 1):
            stalling_run(tmp_path / label / str(number), 5.0, order=order)
    notes = compare(load_campaign(tmp_path)).notes
    assert any("Not interleaved with the runs of a" in n and ": b." in n for n in notes) == said


def test_one_variant_has_figures_and_no_comparison(tmp_path: Path) -> None:
    found = compared(tmp_path, a=BASE)
    assert not found.primary and not found.spread and found.samples["stalled"]["a"].mean == 63
    assert found.sentences["a"].startswith("a: frozen for 93 % of the time, at worst for 66.0 s.")
    assert found.sentences["a"].endswith(": 63.0 s a run (sd 2.2 s, 5 runs).")


def test_the_plan_sets_baseline_margin_and_looks(tmp_path: Path) -> None:
    plan = """
        baseline = "b"
        margin = 0.2
        [stop_when_sure]
        looks = [5, 7, 10, 14, 20]
    """
    found = compared(tmp_path, plan, a=BASE, b=LESS)
    assert found.baseline == "b" and found.level == pytest.approx(0.01)
    assert found.primary["a"].margin == 0.2
    assert found.primary["a"].verdict == "regressed"  # 2 / 252 <= 0.05 / 5
    assert any("0.05 / 5 = 0.01" in note for note in found.notes)
    stricter = compared(tmp_path / "c", plan, a=BASE, b=LESS, c=LESS)
    assert stricter.primary["a"].verdict == "undecided"  # 2 x 2 / 252 > 0.05 / 5


def test_another_baseline_can_be_asked_for(tmp_path: Path) -> None:
    loaded = load_campaign(campaign(tmp_path, {"a": BASE, "b": LESS}))
    assert compare(loaded, baseline="b").variants == ["b", "a"]
    with pytest.raises(UserError, match=r"--baseline z: no such variant .*a, b"):
        compare(loaded, baseline="z")


def test_a_planned_baseline_without_runs_is_said(tmp_path: Path) -> None:
    found = compared(tmp_path, 'baseline = "gone"', a=[5.0], b=[6.0])
    assert found.baseline == "a" and any("gone" in note for note in found.notes)


@given(RUNS, RUNS)
def test_swapped_groups_swap_the_verdict(base: list[float], sample: list[float]) -> None:
    swapped = {"regressed": "improved", "improved": "regressed"}
    there, back = one(base, sample), one(sample, base)
    assert back.verdict == swapped.get(there.verdict, there.verdict)
    assert there.p == pytest.approx(back.p) and 0 < (there.p or 0) <= 1
    assert there.delta == pytest.approx(-(back.delta or 0))
    assert there.more_runs is None or 1 <= there.more_runs <= MANY
    told = there.more_runs is not None or there.least_runs is not None or there.all_failed
    assert (there.verdict == "undecided") == told
    assert there.more_runs is None or min(len(base), len(sample)) >= 4


@given(RUNS, RUNS, st.sampled_from((0.125, 16.0)))
def test_a_unit_does_not_change_the_verdict(
    base: list[float], sample: list[float], factor: float
) -> None:
    scaled = one([factor * value for value in base], [factor * value for value in sample])
    found = one(base, sample)
    assert (scaled.verdict, scaled.p, scaled.delta) == (found.verdict, found.p, found.delta)


@given(RUNS, RUNS)
def test_a_verdict_never_comes_from_too_few_runs(base: list[float], sample: list[float]) -> None:
    found = one(base, sample)
    if found.verdict != "undecided":
        assert not found.too_few and len(base) + len(sample) >= 8


def test_families_judged_at_once_are_judged_as_if_alone() -> None:
    rng = np.random.default_rng(7)
    families = [
        [
            Pair(PRIMARY, str(v), Sample(tuple(rng.gamma(5, 10, 5))), Sample(tuple(row)))
            for v, row in enumerate(rng.gamma(5, 10, (k, 4 + k)))
        ]
        for k in (1, 3, 2)
    ]
    together = judge_families(families, level=0.05, margin=0.1)
    assert together == [judge(family, level=0.05, margin=0.1) for family in families]


def run_command(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "analysis.compare", *map(str, arguments)]
    return subprocess.run(command, cwd=SUITE, capture_output=True, text=True)


def test_the_command(tmp_path: Path) -> None:
    folder = campaign(tmp_path, {"a": BASE, "b": LESS})
    done = run_command(folder)
    assert done.returncode == 0 and "b stalls less than a" in done.stdout
    assert "\x1b" not in done.stdout and not done.stderr
    assert "\x1b[32mimproved\x1b[0m" in run_command(folder, "--colour", "always").stdout
    assert json.loads(run_command(folder, "--json").stdout)["sure"] is True
    assert run_command(folder, "--csv", "--baseline", "b").stdout.startswith("variant,label,")


def test_the_command_refuses_in_one_line(tmp_path: Path) -> None:
    folder = campaign(tmp_path, {"a": [5.0]})
    stalling_run(folder / "b" / "1", 5.0, cpus=64)
    done = run_command(folder)
    assert done.returncode != 0 and done.stderr.count("\n") == 1 and "cpus differs" in done.stderr
    forced = run_command(folder, "--force")
    assert forced.returncode == 0 and "FORCED" in forced.stdout
