# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs whose observers were disturbed: marked, named, and in no verdict."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from analysis.figures.metrics import PRIMARY
from analysis.figures.observer_faults import of_run as disturbed
from analysis.reading.load import Run, load_campaign
from analysis.text import compare_text
from analysis.text.summary_files import summary
from analysis.verdicts import export
from analysis.verdicts.compare import compare
from benchmarks.synthetic_results.make import line_log, meta, write_run

NORMAL: dict[str, Any] = {
    "name": "sampler",
    "major_faults": 0,
    "worst_late_s": 0.21,
    "samples": 1500,
    "missed": 1,
    "dropped": {"kern.log": [7, 700]},
}
RECORDER = {"name": "recorder", "major_faults": 0, "dropped": {}}


def write(folder: Path, gaps: float, state: str = "completed", **facts: Any) -> None:
    facts = {"observers": [RECORDER, NORMAL], "parameters": {"gitk": 1}, **facts}
    files: dict[str, str | bytes] = {
        "meta.json": json.dumps(meta(folder.parent.name, **facts)),
        "latency-gitk-1.log": line_log([(gaps, "pass 1 commits 100")] * 9, 0.1),
    }
    write_run(folder, files, state)


def one(tmp_path: Path, state: str = "completed", **facts: Any) -> Run:
    write(tmp_path / "k" / "1", 2.0, state, **facts)
    return load_campaign(tmp_path).runs[0]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({}, ""),
        ({"worst_late_s": 0.9}, ""),
        ({"worst_late_s": 3.1}, "sampler was 3.1 s late"),
        ({"major_faults": 2}, "sampler had 2 major faults"),
        ({"samples": 1500, "missed": 40}, "sampler missed 40 of 1,540 samples"),
        ({"samples": 100, "missed": 3}, ""),
        ({"dropped": {"vmstat.tsv": [1, 9]}}, "sampler dropped rows of vmstat.tsv"),
        ({"worst_late_s": "x", "missed": None, "dropped": [1], "major_faults": {}}, ""),
        ({"dropped": 5, "samples": 1e400, "missed": [1]}, ""),
        ({"dropped": "kern.log", "name": ["sampler"]}, "sampler ended before its time"),
    ],
)
def test_limits(tmp_path: Path, change: dict[str, Any], said: str) -> None:
    run = one(tmp_path, observers=[RECORDER, {**NORMAL, **change}])
    assert disturbed(run) == ([said] if said else [])


def test_an_observer_that_left_no_word_died(tmp_path: Path) -> None:
    run = one(tmp_path, observers=[RECORDER], evidence={"delayacct": True})
    assert disturbed(run) == [f"{name} ended before its time" for name in ("sampler", "evidence")]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inside: st.lists(inside, max_size=3) | st.dictionaries(st.text(max_size=5), inside),
    max_leaves=5,
)
KEYS = st.sampled_from([*NORMAL, "name", "evidence", "vmstat.tsv"])


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(said=st.lists(st.dictionaries(KEYS, JSON) | JSON, max_size=3) | JSON, evidence=JSON)
def test_damaged_words_of_observers_never_raise(
    said: Any, evidence: Any, tmp_path_factory: pytest.TempPathFactory
) -> None:
    run = one(tmp_path_factory.mktemp("run"), observers=said, evidence=evidence)
    assert all(isinstance(reason, str) for reason in disturbed(run))


def test_evidence_that_died_is_noticed_and_a_failed_run_is_a_result(tmp_path: Path) -> None:
    assert disturbed(one(tmp_path / "a", evidence={"asked": True, "delayacct": True})) == [
        "evidence ended before its time"
    ]
    late = [RECORDER, {**NORMAL, "worst_late_s": 9.0}]
    assert disturbed(one(tmp_path / "b", observers=late))
    assert disturbed(one(tmp_path / "c", "hung", observers=late)) == []


def test_such_a_run_is_in_no_verdict_aloud(tmp_path: Path) -> None:
    late = [RECORDER, {**NORMAL, "worst_late_s": 3.0}]
    for number in range(1, 7):
        write(tmp_path / "a" / str(number), 2.0 + number / 100, order=2 * number)
        bad: dict[str, Any] = {"observers": late} if number < 5 else {}
        write(tmp_path / "b" / str(number), 4.0 + number / 100, order=2 * number + 1, **bad)
    campaign = load_campaign(tmp_path)
    compared = compare(campaign)
    assert compared.samples[PRIMARY.key]["b"].numbers == (5, 6)
    assert compared.samples[PRIMARY.key]["a"].runs == 6
    assert compared.failures["b"].runs == 2
    (note,) = (one for one in compared.notes if "disturbed" in one)
    assert "b/1 (sampler was 3.0 s late), b/2" in note and "a/" not in note
    assert (
        compared.primary["b"].verdict == "undecided" and "With them b would be regressed." in note
    )
    assert "Observers disturbed" in compare_text.text(compared)
    text = summary(campaign, compared)
    assert "  1! completed" in text and "!: observers disturbed, in no verdict" in " ".join(
        text.split()
    )


def test_a_variant_of_which_all_runs_are_left_out_has_no_figure(tmp_path: Path) -> None:
    late = [RECORDER, {**NORMAL, "worst_late_s": 3.0}]
    write(tmp_path / "a" / "1", 2.0)
    write(tmp_path / "b" / "1", 4.0, observers=late)
    compared = compare(load_campaign(tmp_path))
    assert compared.samples[PRIMARY.key]["b"].values == ()
    assert compared.primary["b"].verdict == "undecided"
    assert compare_text.text(compared) and export.json_text(compared)
