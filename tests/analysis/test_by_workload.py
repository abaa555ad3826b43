# SPDX-License-Identifier: GPL-2.0-or-later
"""A campaign of two workloads: each judged by itself and by its own metric, corrected together."""

import csv
import io
import json
import math
from pathlib import Path

import pytest

from analysis.reading.load import load_campaign
from analysis.text import compare_text
from analysis.text.summary_files import details, summary, try_compare
from analysis.verdicts import export
from analysis.verdicts.by_workload import by_workload
from analysis.verdicts.compare import compare
from errors import UserError
from tests.support.mixed import DESKTOP, GROUP, mixed_campaign
from tests.support.verdicts import stalling_run
from tests.support.workloads import figures_of, workload_campaign, workload_run

APART = 2 / math.comb(10, 5)  # p of five runs that all lie above five others


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return mixed_campaign(tmp_path_factory.mktemp("mixed") / "both", more=["f"])


def test_each_workload_has_its_own_baseline_and_metric(mixed: Path) -> None:
    judged = compare(load_campaign(mixed))
    desktop, group = judged.each
    assert (desktop.variants, group.variants) == (["a", "b"], ["c", "d", "e"])
    assert (desktop.metric.key, group.metric.key) == ("stalled", "time-inside")
    assert desktop.samples["stalled"]["b"].values == DESKTOP["b"]
    assert group.samples["time-inside"]["d"].values == GROUP["d"]
    assert desktop.primary["b"].verdict == "improved" and group.primary["d"].verdict == "regressed"
    assert desktop.sentences["b"].startswith("b stalls less than a")
    assert not desktop.forced and len(judged.whole.runs) == 25


def test_the_corrections_count_the_comparisons_of_all(mixed: Path, tmp_path: Path) -> None:
    """Three primary comparisons, of which two are as sure as five runs of each can make them."""
    desktop, group = compare(load_campaign(mixed)).each
    for one in (desktop.primary["b"], group.primary["d"]):
        assert one.p == pytest.approx(APART) and one.p_adjusted == pytest.approx(3 * APART)
    failures = [*desktop.failures.values(), *group.failures.values()]
    assert [one.p_adjusted for one in failures] == [1.0] * 3
    # By itself each of them would have been corrected for less.
    alone = compare(load_campaign(mixed_campaign(tmp_path / "x", group={})))
    assert alone.primary["b"].p_adjusted == pytest.approx(APART) and not alone.others
    assert group.secondary["stalled"].keys() == {"d", "e"}


def test_two_more_comparisons_may_cost_a_verdict(tmp_path: Path) -> None:
    four = {label: runs[:4] for label, runs in DESKTOP.items()}
    alone = compare(load_campaign(mixed_campaign(tmp_path / "x", four, {})))
    assert alone.primary["b"].verdict == "improved"
    less = {label: runs[:4] for label, runs in GROUP.items()}
    both = compare(load_campaign(mixed_campaign(tmp_path / "y", four, less)))
    assert both.primary["b"].verdict == "undecided" and both.primary["b"].too_few


def test_it_is_sure_when_all_of_it_is(tmp_path: Path, mixed: Path) -> None:
    judged = compare(load_campaign(mixed))
    assert judged.others[0].primary["e"].verdict == "undecided" and not judged.sure
    found = json.loads(export.json_text(judged))
    assert found["sure"] is False and [one["sure"] for one in found["workloads"]] == [True, False]
    assert [one["workload"] for one in found["workloads"]] == ["desktop", "memcg-dirty"]
    less = {label: GROUP[label] for label in "cd"}
    sure = compare(load_campaign(mixed_campaign(tmp_path / "x", group=less)))
    assert sure.sure and json.loads(export.json_text(sure))["sure"] is True
    reader = csv.DictReader(io.StringIO(export.csv_text(sure)))
    assert {(row["variant"], row["workload"]) for row in reader} == {
        *(("a", "desktop"), ("b", "desktop")),
        *(("c", "memcg-dirty"), ("d", "memcg-dirty")),
    }


def test_the_baseline_is_the_plans_in_its_workload_only(tmp_path: Path) -> None:
    campaign = load_campaign(mixed_campaign(tmp_path, baseline="d"))
    assert [one.baseline for one in compare(campaign).each] == ["d", "a"]
    assert [one.baseline for one in compare(campaign, baseline="b").each] == ["d", "b"]
    assert [one.baseline for one in compare(campaign, baseline=["b", "e"]).each] == ["e", "b"]
    with pytest.raises(UserError, match="--baseline z: no such variant"):
        compare(campaign, baseline="z")


def test_the_texts_have_a_part_for_each(mixed: Path) -> None:
    campaign = load_campaign(mixed)
    judged = try_compare(campaign)
    assert not isinstance(judged, UserError)
    for text in (summary(campaign, judged), compare_text.text(judged)):
        first, second = (
            text.index("\ndesktop\n-------\n"),
            text.index("\nmemcg-dirty\n-----------\n"),
        )
        desktop, group = text[first:second], text[second:]
        assert "3 comparisons of a primary" in text[:first]
        assert "stalled s" in desktop and "Two dd of 256 MiB" not in desktop
        assert "Two dd of 256 MiB" in group and "d is worse than c" in group
        assert "f" not in judged.variants
    assert "Not finished: 5 runs of 20 are missing" in " ".join(summary(campaign, judged).split())
    told = details(campaign, everything=True)
    assert (
        told.index("\na, run 5 of 5\n") < told.index("\nb, run 1 of 5\n") < told.index("\nc, run")
    )


def test_what_differs_within_a_workload_is_refused(tmp_path: Path) -> None:
    mixed_campaign(tmp_path)
    workload_run(tmp_path / "d" / "6", figures_of(40.0), mem_total_kib=2_000_000)
    with pytest.raises(UserError, match=r"mem_total_kib differs: .* in c/1.*, 2000000 in d/6"):
        compare(load_campaign(tmp_path))
    assert [len(one.forced) for one in compare(load_campaign(tmp_path), force=True).each] == [0, 1]


def test_a_campaign_of_one_is_the_very_campaign(tmp_path: Path) -> None:
    campaign = load_campaign(workload_campaign(tmp_path, {"c": GROUP["c"]}))
    assert by_workload(campaign) == [campaign] and compare(campaign).whole is campaign


def test_runs_that_tell_nothing_go_with_their_variant_or_with_the_first(tmp_path: Path) -> None:
    mixed_campaign(tmp_path)
    for place in ("d/6", "z/1"):
        stalling_run(tmp_path / place, 1.0)
        (tmp_path / place / "meta.json").write_text("{")
    (tmp_path / "e" / "6").mkdir()
    (tmp_path / "y" / "1").mkdir(parents=True)
    (tmp_path / "y" / "1" / "events.jsonl").write_text("")
    first, second = by_workload(load_campaign(tmp_path))
    assert list(first.variants()) == ["a", "b", "z"]
    assert {run.variant for run in second.runs if run.number == 6} == {"d"}
    assert [name.partition(" ")[0] for name in first.incomplete] == ["y/1"]
    assert [name.partition(" ")[0] for name in second.incomplete] == ["e/6"]
