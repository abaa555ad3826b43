# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs on the clocks of several hosts: each verdict compares within hosts, and never across."""

import itertools
import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.figures.by_host import by_host
from analysis.reading.load import load_campaign
from analysis.text.summary_files import summary
from analysis.trends.trend import find_trend
from analysis.verdicts.compare import compare
from analysis.verdicts.statistics import (
    attainable_within,
    cliffs_delta,
    median_ratio,
    permutation_p,
    ratio_bounds,
    ratio_interval,
)
from contract.levels import attainable_p
from errors import UserError
from graphs.bundle import bundle
from tests.support.verdicts import campaign

SCATTER = (1.00, 1.06, 0.95, 1.02, 0.98, 1.04, 0.96, 1.01, 1.05, 0.99)
FAST, SLOW = 100.0, 300.0  # stalled seconds of a run on a host, and on one that is 3 times slower


def made(
    folder: Path,
    hosts: Mapping[str, Sequence[str]],
    effect: float = 1.0,
    **facts: Any,
) -> Path:
    """A campaign of two variants; hosts: who did each run of each. "beta" is the slow one."""
    by_variant = {
        label: [
            (SLOW if host == "beta" else FAST) * factor * (effect if label == "new" else 1)
            for host, factor in zip(of, itertools.cycle(SCATTER[start:]), strict=False)
        ]
        for start, (label, of) in enumerate(hosts.items())
    }
    campaign(folder, by_variant, **facts)
    runs = {f"{label}/{n}": host for label, of in hosts.items() for n, host in enumerate(of, 1)}
    (folder / "hosts.json").write_text(json.dumps({"format": 1, "runs": runs}))
    return folder


EVEN = {label: ("alpha", "beta") * 4 for label in ("old", "new")}
UNEVEN = {"old": ("alpha",) * 7 + ("beta",) * 3, "new": ("alpha",) * 3 + ("beta",) * 7}


@pytest.mark.parametrize("hosts", [EVEN, UNEVEN], ids=["even", "uneven"])
def test_a_slower_host_is_no_regression(tmp_path: Path, hosts: Mapping[str, Sequence[str]]) -> None:
    found = compare(load_campaign(made(tmp_path / "c", hosts)), baseline="old")
    one = found.primary["new"]
    assert one.verdict not in ("regressed", "improved")
    assert one.ratio == pytest.approx(1, abs=0.05) and one.p is not None and one.p > 0.2
    assert "Measured on the clocks of 2 hosts" in "\n".join(found.notes)
    assert not found.secondary["elapsed"]["new"].differs
    assert found.spread["new"].verdict == "undecided" and "several hosts" in found.spread["new"].why


@pytest.mark.parametrize("hosts", [EVEN, UNEVEN], ids=["even", "uneven"])
@pytest.mark.parametrize(("effect", "verdict"), [(2.0, "regressed"), (0.5, "improved")])
def test_a_true_effect_is_found_behind_hosts_that_differ_more(
    tmp_path: Path, hosts: Mapping[str, Sequence[str]], effect: float, verdict: str
) -> None:
    found = compare(load_campaign(made(tmp_path / "c", hosts, effect)), baseline="old")
    one = found.primary["new"]
    assert one.verdict == verdict and one.ratio == pytest.approx(effect, rel=0.05)
    assert one.low is not None and one.high is not None and one.low < effect < one.high
    assert one.delta == (1 if effect > 1 else -1)


def test_without_blocks_the_uneven_hosts_would_be_called_a_regression(tmp_path: Path) -> None:
    """The guest's clock has no blocks: what is a block's work here shows as an effect."""
    folder = made(tmp_path / "c", UNEVEN, clock={"kind": "guest"})
    assert compare(load_campaign(folder), baseline="old").primary["new"].ratio != pytest.approx(1)


def test_hosts_that_share_no_variant_reach_no_verdict(tmp_path: Path) -> None:
    apart = {"old": ("alpha",) * 6, "new": ("beta",) * 6}
    found = compare(load_campaign(made(tmp_path / "c", apart)), baseline="old")
    one = found.primary["new"]
    assert (one.verdict, one.p, one.smallest, one.ratio) == ("undecided", 1.0, 1.0, None)
    assert "cannot reach the level" in one.why


def test_the_bundle_keeps_the_blocks_and_names_no_host(tmp_path: Path) -> None:
    compared = compare(load_campaign(made(tmp_path / "c", UNEVEN)), baseline="old")
    (tmp_path / "report").mkdir()
    again = load_campaign(bundle.write(compared, tmp_path / "report"))
    assert {run.host for run in again.runs} == {"host 1", "host 2"}
    assert compare(again, baseline="old").primary["new"].p == compared.primary["new"].p


def test_hosts_may_have_other_processors_and_a_host_may_not(tmp_path: Path) -> None:
    folder = made(tmp_path / "c", EVEN)
    for number in range(1, 9):
        for label in ("old", "new"):
            path = folder / label / str(number) / "meta.json"
            meta = json.loads(path.read_text())
            meta |= {"host": {"cpu_model": f"CPU {number % 2}"}, "cpu_model": f"CPU {number % 2}"}
            path.write_text(json.dumps(meta))
    assert compare(load_campaign(folder), baseline="old").primary["new"].verdict == "equivalent"
    meta["host"]["cpu_model"] = "another"
    path.write_text(json.dumps(meta))
    with pytest.raises(UserError, match=r"host\.cpu_model differs: .*another"):
        compare(load_campaign(folder), baseline="old")


def test_a_trend_refuses_runs_of_several_hosts_clocks(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"the host differs: one in new/1, .*another in new/2"):
        find_trend(load_campaign(made(tmp_path / "c", EVEN)))
    assert find_trend(load_campaign(made(tmp_path / "g", EVEN, clock={"kind": "guest"})))


def test_hosts_that_differ_by_their_own_clocks_are_not_warned_of(tmp_path: Path) -> None:
    found = load_campaign(made(tmp_path / "c", EVEN))
    assert [one.is_far for one in by_host(found)] == [False, False]
    assert "WARNING" not in summary(found)


def test_failures_of_one_host_are_no_variants(tmp_path: Path) -> None:
    """Each run on beta fails; the new variant had more of its runs there."""
    folder = made(tmp_path / "c", UNEVEN)
    for label, hosts in UNEVEN.items():
        for number, host in enumerate(hosts, 1):
            path = folder / label / str(number) / "status.json"
            if host == "beta":
                path.write_text(path.read_text().replace("completed", "hung"))
    failures = compare(load_campaign(folder), baseline="old").failures["new"]
    assert (failures.failed, failures.base_failed) == (7, 3) and failures.p == 1


def row(*values: float) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    return np.array([values], dtype=np.float64)


def test_p_within_hosts_is_that_of_all_divisions_within_each() -> None:
    """Two and two runs on one host, one and two on another, counted by hand."""
    sample, base = row(5, 4, 30), row(1, 2, 10, 20)
    hosts = row(0, 0, 1), row(0, 0, 1, 1)
    assert permutation_p(sample, base, "greater", None, None, *hosts)[0] == pytest.approx(1 / 18)
    assert permutation_p(sample, base, "two-sided", None, None, *hosts)[0] == pytest.approx(1 / 9)
    assert attainable_within(hosts[0][0], hosts[1][0]) == pytest.approx(2 / 18)
    assert cliffs_delta(sample, base, None, None, *hosts)[0] == 1


runs = st.lists(
    st.tuples(st.integers(0, 6).map(float), st.sampled_from((0.0, 1.0))), min_size=2, max_size=5
)


@given(runs, runs)
def test_p_is_exact_by_going_through_all_divisions(
    one: list[tuple[float, float]], other: list[tuple[float, float]]
) -> None:
    both = [*one, *other]
    places = {host: [i for i, run in enumerate(both) if run[1] == host] for host in (0.0, 1.0)}
    size = {host: sum(i < len(one) for i in of) for host, of in places.items()}

    def score(chosen: set[int]) -> int:
        return sum(
            (both[i][0] > both[j][0]) - (both[i][0] < both[j][0])
            for i in chosen
            for j in places[both[i][1]]
            if j not in chosen
        )

    divisions = itertools.product(*(itertools.combinations(places[h], size[h]) for h in places))
    scores = [score({*first, *second}) for first, second in divisions]
    observed = score(set(range(len(one))))
    p = sum(found >= observed for found in scores) / len(scores)
    arrays = [np.array([[run[k] for run in of]]) for k in (0, 1) for of in (one, other)]
    sample, base, *hosts = arrays
    assert permutation_p(sample, base, "greater", None, None, *hosts)[0] == pytest.approx(p)
    count = math.prod(math.comb(len(places[h]), size[h]) for h in places)
    assert attainable_within(hosts[0][0], hosts[1][0]) == pytest.approx(min(1, 2 / count))


@given(runs, runs, st.sampled_from((0.5, 3.0, 1000.0)))
def test_how_slow_a_host_is_changes_nothing(
    one: list[tuple[float, float]], other: list[tuple[float, float]], factor: float
) -> None:
    """All of its runs multiplied: p, ratio and interval stay."""
    first, second = (np.array([host for _, host in of]) for of in (one, other))
    found = []
    for by in (1.0, factor):
        sample, base = (
            np.array([(v + 1) * (by if h else 1) for v, h in of]) for of in (one, other)
        )
        hosts = first[None], second[None]
        p = permutation_p(sample[None], base[None], "two-sided", None, None, *hosts)
        middle = ratio_bounds(sample, base, sample, base, first, second)
        interval = ratio_interval(sample, base, 0.3, sample, base, first, second)
        found.append((p[0], *middle, *(interval or (-1, -1))))
    assert found[0] == pytest.approx(found[1])


@given(runs, runs)
def test_one_host_is_no_block(
    one: list[tuple[float, float]], other: list[tuple[float, float]]
) -> None:
    sample, base = (np.array([v + 1 for v, _ in of]) for of in (one, other))
    first, second = np.zeros(len(one)), np.zeros(len(other))
    rows, hosts = (sample[None], base[None]), (first[None], second[None])
    p = permutation_p(rows[0], rows[1], "two-sided", None, None, *hosts)
    assert p == pytest.approx(permutation_p(rows[0], rows[1]))
    delta = cliffs_delta(rows[0], rows[1], None, None, *hosts)
    assert delta == pytest.approx(cliffs_delta(rows[0], rows[1]))
    middle = ratio_bounds(sample, base, sample, base, first, second)
    assert middle[0] == pytest.approx(median_ratio(sample, base))
    assert attainable_within(first, second) == pytest.approx(attainable_p(len(one), len(other)))
