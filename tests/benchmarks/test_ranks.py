# SPDX-License-Identifier: GPL-2.0-or-later
"""Rank correlations with known answers."""

from dataclasses import replace
from pathlib import Path

import pytest

from analysis.figures.metrics import PRIMARY, Metric
from analysis.reading.load import Run, load_campaign
from benchmarks import ranks
from benchmarks.synthetic_results.make import make_campaign
from errors import UserError


def test_correlation_and_its_probability() -> None:
    rising = [(float(n), float(n)) for n in range(6)]
    falling = [(first, -second) for first, second in rising]
    assert ranks.correlation(rising) == pytest.approx(1)
    assert ranks.correlation(falling) == pytest.approx(-1)
    assert ranks.correlation([(first, 2.0) for first, _ in rising]) is None
    # Two of the 720 orders of six are as far from chance.
    assert ranks.probability(falling) == pytest.approx(2 / 720)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Run]:
    return list(load_campaign(make_campaign(tmp_path_factory.mktemp("c") / "c", 5, runs=3)).runs)


def test_a_metric_that_is_the_primary_one_and_one_that_is_not(
    runs: list[Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    stalled = PRIMARY.of
    assert PRIMARY.value is not None
    same = Metric("same", "same", "s", 1, PRIMARY.value)
    opposite = Metric("opposite", "opposite", "s", 1, lambda it: -(stalled(it) or 0))
    never = Metric("never", "never", "s", 1, lambda it: None)
    traffic = replace(same, key="traffic", felt=False)
    metrics = (PRIMARY, same, opposite, never, traffic)
    monkeypatch.setattr(ranks, "metrics_of", lambda workload: metrics)
    made = {rank.metric.key: rank for rank in ranks.ranked(runs)}
    assert list(made) == ["same", "opposite", "never"]
    assert [made["same"].variants, made["same"].runs] == pytest.approx([1, 1])
    assert made["same"].p == pytest.approx(2 / 120)
    assert [made["opposite"].variants, made["opposite"].runs] == pytest.approx([-1, -1])
    assert (made["never"].variants, made["never"].p, made["never"].runs) == (None, None, None)


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    campaign = make_campaign(tmp_path / "c", 4, runs=2)
    assert ranks.main([str(campaign)]) == 0
    head, *lines = capsys.readouterr().out.splitlines()
    assert head.split() == ["metric", "variants", "p", "runs"]
    (worst,) = [line.split() for line in lines if line.startswith("worst stall")]
    assert -1 <= float(worst[-3]) <= 1 and 0 < float(worst[-2]) <= 1


def test_few_variants_are_refused(tmp_path: Path) -> None:
    campaign = make_campaign(tmp_path / "c", 3, runs=2)
    with pytest.raises(UserError, match="3 variants have runs that completed; 4 are needed"):
        ranks.main([str(campaign)])
