# SPDX-License-Identifier: GPL-2.0-or-later
"""What somebody in front of the machine meets: how much of the time it is frozen, and how long."""

import json
from pathlib import Path

import pytest

from analysis.figures.metrics import added_up, frozen_share, measure
from analysis.reading.load import Run, load_campaign
from analysis.reading.words import percent
from analysis.text.summary_files import summary
from analysis.verdicts.choice import worst_subject
from analysis.verdicts.compare import compare
from analysis.verdicts.felt import frozen_words
from benchmarks.synthetic_results.make import line_log, meta, write_run
from tests.support.verdicts import campaign, cut_at_the_limit

# gitk-1: 3 of 4 s in stalls. gitk-2: 4 of 6 s, 2 s of it the open gap. Together 7 of 10 s.
FIRST = [(0.5, "x"), (3.0, "x"), (0.5, "x")]
SECOND = [(2.0, "x"), (0.9, "x"), (0.9, "x"), (0.2, "x")]


def two_gitks(run: Path, state: str = "completed", second: str | None = None) -> Run:
    files: dict[str, str | bytes] = {
        "meta.json": json.dumps(meta("6.1", parameters={"gitk": 2})),
        "latency-gitk-1.log": line_log(FIRST, 0.0),
        "latency-gitk-2.log": line_log(SECOND, 2.0) if second is None else second,
    }
    write_run(run, files, state)
    return load_campaign(run.parent.parent).runs[0]


def test_the_share_is_of_the_time_of_all_subjects_together(tmp_path: Path) -> None:
    run = two_gitks(tmp_path / "6.1" / "1")
    share = frozen_share(run)
    assert share == pytest.approx(70.0) and measure(run)["share-1"] == share
    assert worst_subject(run).name == "gitk-1" and added_up(run.workload) == "two gitk's added up"
    text = " ".join(summary(load_campaign(tmp_path)).split())
    assert (
        "Frozen for 70 % of the time, at worst for 3.0 s (gitk-1). The stalls (gaps of 1 s or "
        "more) of two gitk's add up to 7.0 s; each of them ran for 4 to 6 s." in text
    )


def test_a_machine_that_hung_was_frozen_as_far_as_it_was_heard(tmp_path: Path) -> None:
    """gitk-2's log has no end: 4 s of lines, and nothing more that was sent."""
    run = two_gitks(tmp_path / "6.1" / "1", "hung", line_log(SECOND, None))
    assert frozen_share(run) == pytest.approx(100 * 5 / 8)


def test_lost_lines_have_no_share(tmp_path: Path) -> None:
    lines = line_log(SECOND, 2.0).splitlines(keepends=True)
    run = two_gitks(tmp_path / "6.1" / "1", second="".join(lines[1:]))
    assert frozen_share(run) is None
    assert "Frozen for 3.0 s at the worst (gitk-1)." in summary(load_campaign(tmp_path))


def test_a_variants_worst_is_that_of_any_run_and_its_share_a_mean(tmp_path: Path) -> None:
    """5 s of short gaps in each run, and a stall of 5, 15, 45 s: 50, 75, 90 % of the time."""
    compared = compare(load_campaign(campaign(tmp_path, {"a": [5.0, 15.0, 45.0], "b": ["hung"]})))
    assert list(compared.felt) == ["a"]
    assert compared.felt["a"].frozen == pytest.approx((50 + 75 + 90) / 3)
    assert compared.felt["a"].worst == 45
    assert compared.felt["a"].elapsed == pytest.approx(80 / 3)
    assert compared.sentences["a"].startswith(
        "a (the baseline): frozen for 72 % of the time, at worst for 45.0 s. All its stalls, in "
        "27 s: 21.7 s a run"
    )


def test_runs_that_were_not_done_count_up_to_the_limit(tmp_path: Path) -> None:
    """One variant's runs all went on to the limit, the other's stall for 5 s of 10."""
    path = campaign(tmp_path, {"a": [15.0, 45.0], "b": [5.0, 5.0]})
    cut_at_the_limit(path / "a")
    compared = compare(load_campaign(path))
    assert compared.felt["a"].cut and not compared.felt["b"].cut
    assert compared.felt["a"].frozen == pytest.approx((75 + 90) / 2)
    assert compared.sentences["a"].startswith(
        "a (the baseline): frozen for 82 % of the time up to the limit, at worst for at least 45.0"
    )
    assert "(a: 82 %, at least 45.0 s)" in compared.sentences["b"]


def test_a_share_is_not_only_of_the_few_runs_that_ended(tmp_path: Path) -> None:
    """Stalls of 5, 15 and 45 s in 10, 20 and 50: the last went on, and a fourth run hung."""
    path = campaign(tmp_path, {"a": [5.0, 15.0, 45.0, "hung"], "b": [5.0, 5.0]})
    cut_at_the_limit(path / "a" / "3")
    compared = compare(load_campaign(path))
    assert compared.felt["a"].frozen == pytest.approx((50 + 75 + 90) / 3)
    assert compared.samples["share-1"]["a"].mean == pytest.approx((50 + 75) / 2)
    assert (
        "a (the baseline): frozen for 72 % of the time in the runs that ended, or up to the limit,"
        in compared.sentences["a"]
    )


def test_nothing_and_nearly_all_are_not_rounded_to() -> None:
    found = [percent(value) for value in (0.0, 0.01, 0.99, 1.0, 99.0, 99.1, 99.99, 100.0)]
    few, many = "less than 1 %", "more than 99 %"
    assert found == ["0 %", few, few, "1 %", "99 %", many, many, "100 %"]
    assert frozen_words(0.0, 0.4) == "never frozen (no gap of 1 s), the longest gap 0.4 s"
    assert frozen_words(85.4, 16.5) == "frozen for 85 % of the time, at worst for 16.5 s"
