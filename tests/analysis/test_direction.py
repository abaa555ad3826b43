# SPDX-License-Identifier: GPL-2.0-or-later
"""Verdicts where more is better: the same as where less is, the other way round."""

import math
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.figures.metrics import Metric
from analysis.reading.load import load_campaign
from analysis.text import compare_text
from analysis.text.verdict_table import metric_cell, ratio_cell
from analysis.verdicts.compare import compare
from analysis.verdicts.judge import Pair, judge
from analysis.verdicts.sentences import sentence
from analysis.verdicts.verdict import Comparison, Failures, Sample
from tests.support.workloads import DIRTY, workload_campaign

TIME = Metric("time", "time of it", "s", 1)
RATE = Metric("rate", "rate of it", "MB/s", 1, better="higher")
LOW, HIGH = (28.0, 30.0, 31.0, 33.0, 35.0), (60.0, 62.0, 63.0, 64.0, 66.0)
HUNG = {1: math.inf, -1: -math.inf}
SWAPPED = {"regressed": "improved", "improved": "regressed"}
RUNS = st.lists(st.integers(1, 9).map(float), min_size=1, max_size=7)


def one(metric: Metric, base: tuple[float, ...], sample: tuple[float, ...]) -> Comparison:
    pair = Pair(metric, "b", Sample(base), Sample(sample))
    return judge([pair], level=0.05, margin=0.1)[0]


@pytest.mark.parametrize(
    ("metric", "sample", "verdict", "delta"),
    [
        (TIME, HIGH, "regressed", 1), (RATE, HIGH, "improved", -1),
        (TIME, LOW, "improved", -1), (RATE, LOW, "regressed", 1),
    ],
)  # fmt: skip
def test_worse_is_what_the_metric_says(
    metric: Metric, sample: tuple[float, ...], verdict: str, delta: int
) -> None:
    base = LOW if sample is HIGH else HIGH
    found = one(metric, base, sample)
    assert found.verdict == verdict and found.delta == delta
    assert found.p == pytest.approx(2 / 252)
    assert found.ratio == pytest.approx(2 if sample is HIGH else 1 / 2)
    nobody = Failures("b", 0, 5, 0, 5, 1.0, 1.0, "undecided")
    words = {"regressed": "worse", "improved": "better"}[verdict]
    text = sentence("B", "A", found, one(metric, base, base), nobody).text
    about = f"({metric.title}, {metric.better} is better)"
    assert text.startswith(f"B is {words} than A {about}: ") and "means go" not in text


@pytest.mark.parametrize("metric", [TIME, RATE])
def test_failed_runs_are_the_worst_and_have_no_bound(metric: Metric) -> None:
    hung = (HUNG[metric.sign],) * 2
    alike = (40.0, 41.0, 42.0)
    found = one(metric, (39.0, 40.0, 41.0, 42.0, 43.0), hung + alike)
    assert found.delta is not None and found.delta > 0
    assert found.sample.failed == 2 and found.sample.mean == 41
    assert ratio_cell(found) == ("1.05 (0.95-inf)" if metric is TIME else "0.95 (0.000-1.05)")
    assert one(metric, LOW, (HUNG[metric.sign],) * 5).verdict == "regressed"
    assert one(metric, (HUNG[metric.sign],) * 5, LOW).verdict == "improved"


@given(RUNS, RUNS)
def test_the_other_direction_swaps_the_verdicts_and_nothing_else(
    base: list[float], sample: list[float]
) -> None:
    lower, higher = (one(metric, tuple(base), tuple(sample)) for metric in (TIME, RATE))
    assert higher.verdict == SWAPPED.get(lower.verdict, lower.verdict)
    assert higher.delta is not None and lower.delta == -higher.delta
    for figure in ("p", "p_adjusted", "ratio", "low", "high", "p_equivalent", "more_runs"):
        assert getattr(higher, figure) == getattr(lower, figure), figure


def test_means_against_ranks_are_told_in_either_direction() -> None:
    base = (60.0, 62.0, 63.0, 64.0, 66.0, 6000.0)
    for metric in (TIME, RATE):
        found = one(metric, base, (70.0, 71.0, 72.0, 73.0, 74.0, 75.0))
        if found.verdict == "undecided":
            found = replace(found, verdict="regressed" if metric is TIME else "improved")
        nobody = Failures("b", 0, 6, 0, 6, 1.0, 1.0, "undecided")
        text = sentence("B", "A", found, one(metric, base, base), nobody).text
        assert text.startswith("By the ranks of the runs B is ")


def test_a_campaign_whose_rate_counts(tmp_path: Path) -> None:
    runs: dict[str, list[float | str]] = {
        "a": [40.0, 41.0, 42.0, 43.0, 44.0],
        "slow": [50.0, 51.0, 52.0, 53.0, "hung"],
        "fast": [30.0, 31.0, 32.0, 33.0, 34.0],
    }
    rate = replace(DIRTY, primary="rate-inside").as_meta()
    by_rate = compare(load_campaign(workload_campaign(tmp_path / "rate", runs, rate)))
    by_time = compare(load_campaign(workload_campaign(tmp_path / "time", runs)))
    for found in (by_rate, by_time):
        assert found.primary["slow"].verdict == "regressed"
        assert found.primary["fast"].verdict == "improved"
        assert not found.blame
    assert by_rate.samples["rate-inside"]["slow"].values[-1] == -math.inf
    cells = [metric_cell(by_rate, by_rate.metric, variant) for variant in ("slow", "fast")]
    assert cells[0][0].startswith("<=") and [cell[3] for cell in cells] == ["worse", "better"]
    text = " ".join(compare_text.text(by_rate).split())
    assert "Rate inside the cgroup (MB/s, higher is better), against a:" in text
    assert "lower is better for all metrics but rate inside the cgroup, of which more is" in text
    assert "Only one metric was fixed in advance: rate inside the cgroup" in text
    assert "stalls" not in text
