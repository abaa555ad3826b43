# SPDX-License-Identifier: GPL-2.0-or-later
"""The proof of the verdicts: its simulated campaigns are what they are said to be."""

import math
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.figures.metrics import PRIMARY, measure
from analysis.reading.load import load_campaign
from analysis.stall_causes.run_causes import run_causes
from analysis.verdicts.judge import Pair, judge
from analysis.verdicts.verdict import Comparison, Sample, Word
from benchmarks.synthetic_results.make import make_campaign
from benchmarks.verdicts.blames import KEYS, Truth, cause_pools, simulate_blames
from benchmarks.verdicts.simulate import (
    Pool,
    Setting,
    campaigns,
    contradicts,
    pools,
    simulate,
    spreads,
)

SUITE = Path(__file__).resolve().parents[2]
ENDED = Sample((1.0,)), Sample((1.0,))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_campaign(tmp_path_factory.mktemp("pool"), 2, 3)


@pytest.fixture(scope="module")
def pool(folder: Path) -> list[Pool]:
    return pools([load_campaign(folder)])


def test_the_pool_holds_the_real_runs_stalls(folder: Path, pool: list[Pool]) -> None:
    runs = load_campaign(folder).variants()
    assert [len(one.real) for one in pool] == [3, 3]
    for one, variant in zip(pool, runs.values(), strict=True):
        assert one.real == pytest.approx([measure(run)["stalled"] for run in variant])


def test_simulated_runs_scatter_as_the_real_ones(pool: list[Pool]) -> None:
    for one in (pool[0], Pool("calm", np.array([90.0, 100.0, 108.0, 96.0]))):
        drawn = np.log(one.draw(np.random.default_rng(1), 20_000))
        real = np.log(one.real)
        assert drawn.mean() == pytest.approx(real.mean(), abs=0.05 * real.std(ddof=1))
        assert drawn.std() == pytest.approx(real.std(ddof=1), rel=0.03)
        assert len(np.unique(drawn)) > 19_000


def test_the_same_seed_gives_the_same_campaigns(pool: list[Pool]) -> None:
    setting = Setting((5,), variants=2)
    one, same, other = (campaigns(pool, setting, 20, seed) for seed in (1, 1, 2))
    assert np.array_equal(one, same) and not np.array_equal(one, other)
    assert np.shape(one) == (20, 3, 5)


def test_an_effect_is_in_the_variants_only(pool: list[Pool]) -> None:
    plain = np.array(campaigns(pool, Setting((4,)), 10, 3))
    twice = np.array(campaigns(pool, Setting((4,), effect=2.0), 10, 3))
    assert twice[:, 0] == pytest.approx(plain[:, 0])
    assert twice[:, 1] == pytest.approx(2 * plain[:, 1])


def test_the_same_kernel_seldom_differs_and_ten_times_nearly_always(pool: list[Pool]) -> None:
    for looks in ((5,), (5, 7, 10)):
        same = Setting(looks)
        tally = simulate(campaigns(pool, same, 300, 4), same, alpha=0.05, margin=0.1)
        assert tally.regressed + tally.improved <= 0.07  # 5 % and chance
        worse = Setting(looks, effect=10.0)
        tally = simulate(campaigns(pool, worse, 50, 4), worse, alpha=0.05, margin=0.1)
        assert tally.regressed == tally.sure >= 0.9 and tally.improved == 0
        assert looks[0] <= tally.runs < looks[0] + 1


def test_no_interval_contradicts_its_verdict(pool: list[Pool]) -> None:
    for setting in (
        Setting((5, 7), 3, 1.15),
        Setting((4,), 1, 0.8, calm=0.2),
        Setting((5,), 4, calm=0.1),
    ):
        tally = simulate(campaigns(pool, setting, 60, 8), setting, alpha=0.05, margin=0.1)
        assert tally.contradicted == 0 and tally.covered >= 0.93
    inside, beyond = (Comparison(PRIMARY, "b", *ENDED, low=1.01, high=x) for x in (1.05, 1.4))
    for one, fits in ((inside, "equivalent"), (beyond, "regressed")):
        words: tuple[Word, ...] = ("equivalent", "regressed", "improved", "undecided")
        assert [w for w in words if not contradicts(replace(one, verdict=w))] == [fits]


RUN = st.one_of(st.integers(1, 9).map(float), st.just(math.inf), st.just(0.0))
GROUPS = st.lists(st.lists(RUN, min_size=5, max_size=5), min_size=2, max_size=4)


@given(GROUPS)
def test_nor_does_it_with_ties_and_failed_runs(groups: list[list[float]]) -> None:
    base, *others = (Sample(tuple(group)) for group in groups)
    pairs = [Pair(PRIMARY, str(i), base, other) for i, other in enumerate(others)]
    for one in judge(pairs, level=0.05, margin=0.1):
        if one.ratio is not None:
            assert not contradicts(one), one


def test_three_runs_decide_nothing(pool: list[Pool]) -> None:
    three = Setting((3,), effect=10.0)
    tally = simulate(campaigns(pool, three, 50, 5), three, alpha=0.05, margin=0.1)
    assert (tally.regressed, tally.improved, tally.equivalent, tally.sure) == (0, 0, 0, 0)


def test_more_runs_of_the_baseline_decide_on_many_variants(pool: list[Pool]) -> None:
    shares = []
    for baseline_runs in (5, 7):
        many = Setting((5,), variants=18, effect=10.0, baseline_runs=baseline_runs)
        drawn = campaigns(pool, many, 20, 7)
        assert [len(group) for group in drawn[0]] == [baseline_runs, *[5] * 18]
        shares.append(simulate(drawn, many, alpha=0.05, margin=0.1).regressed_comparisons)
    assert shares[0] == 0 and shares[1] > 0.9


def test_scatter_is_found(pool: list[Pool]) -> None:
    drawn = campaigns(pool, Setting((6,), calm=0.1, scatter=20.0), 60, 6)
    tally = spreads(drawn, alpha=0.05)
    assert tally.regressed > 0.5 and tally.improved == 0


def test_the_command_prints_its_tables(folder: Path) -> None:
    command = [sys.executable, "-m", "benchmarks.verdicts", str(folder), "--campaigns", "2"]
    command += ["--run-s", "60"]
    done = subprocess.run(command, cwd=SUITE, capture_output=True, text=True)
    assert done.returncode == 0 and not done.stderr
    assert done.stdout.count("the same kernel (A/A)") == 15
    assert "no blame is simulated" in done.stdout
    assert "until sure, 5 to 20" in done.stdout and "scatters 16 times as much" in done.stdout
    lines = done.stdout.splitlines()
    (head,) = [place for place, line in enumerate(lines) if "is found in 80.0 %" in line]
    rows = [[cell.strip() for cell in line.split("|")] for line in lines[head + 2 : head + 6]]
    assert [row[2] for row in rows] == ["1.25", "1.25", "1.10", "1.10"]
    for _, name, _, runs, _, minutes, _ in rows:
        assert name.startswith(folder.name)
        few, long = runs.split(" ")[-1], minutes.split(" ")[-1]
        assert int(long) == 2 * int(few) and ("more" in runs) == ("more" in minutes)


def test_a_cause_pool_holds_the_cards_seconds(tmp_path: Path) -> None:
    loaded = load_campaign(make_campaign(tmp_path / "c", 1, 2, with_evidence=True))
    (found,) = cause_pools([loaded])
    for by_cause, run in zip(found.real, loaded.runs, strict=True):
        why = run_causes(run)
        assert why is not None and why.total > 0
        assert by_cause.sum() == pytest.approx(why.total)
        assert by_cause[KEYS.index("swap_in")] == pytest.approx(why.seconds["swap_in"])
    assert found.draw(np.random.default_rng(1), 3).shape == (3, len(KEYS))
    # From runs that never stalled none can be drawn.
    assert pools([loaded], lambda _: [], len(KEYS)) == []
    assert cause_pools([load_campaign(make_campaign(tmp_path / "d", 1, 2))]) == []


def test_the_cause_that_was_made_longer_is_named() -> None:
    rng = np.random.default_rng(7)
    shares = np.array([0.6, 0.3, 0.1] + [0.0] * (len(KEYS) - 3))
    steady = Pool("steady", rng.uniform(190, 210, (5, 1)) * shares)
    judged = {"alpha": 0.05, "margin": 0.1}
    found = simulate_blames([steady], Truth(6, 2.0), 40, 1, **judged)
    assert found.verdict == 1.0 and found.right >= 0.9 and found.wrong == 0
    same = simulate_blames([steady], Truth(6), 200, 2, **judged)
    assert same.wrong <= same.verdict <= 0.07 and same.right == same.beside == 0
    every = simulate_blames([steady], Truth(6, 2.0, alone=False), 40, 3, **judged)
    assert every.verdict == 1.0 and every.wrong == 0 and every.beside >= 0.9


def test_the_command_needs_runs(tmp_path: Path) -> None:
    make_campaign(tmp_path, 1, 1)
    command = [sys.executable, "-m", "benchmarks.verdicts", str(tmp_path)]
    done = subprocess.run(command, cwd=SUITE, capture_output=True, text=True)
    assert done.returncode != 0 and done.stderr.count("\n") == 1
