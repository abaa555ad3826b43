# SPDX-License-Identifier: GPL-2.0-or-later
"""Where a series of kernels changes: known answers, the error rate's sum, text, JSON and status."""

import json
import math
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis.reading.latency_log import Floats
from analysis.text.trend import text
from analysis.trend import main
from analysis.trends.changes import (
    division_p,
    divisions,
    find_alarms,
    level,
    place,
    places,
)
from analysis.trends.export import json_text
from analysis.trends.trend import Trend, find_trend
from analysis.verdicts.pool import load_pool
from analysis.verdicts.statistics import EXACT, EXACT_GROUP, permutation_p
from errors import Exit, UserError
from tests.support.verdicts import campaign

QUIET = [[100.0 + night + 7 * run for run in range(5)] for night in (0, 3, 1, 4, 2, 5)]
TWICE = [[2 * value for value in night] for night in QUIET]
WORDS = st.one_of(st.integers(0, 9).map(float), st.just(math.inf))
POINTS = st.lists(st.lists(WORDS, min_size=1, max_size=4), min_size=2, max_size=9)


def test_all_levels_together_are_the_error_rate() -> None:
    """Each test of each night of each stretch has its share: 1 in all, if they never end."""
    most = 300
    whole = sum(
        len(divisions(points)) * level(changes, points, 0.05)
        for changes in range(most)
        for points in range(2, most)
    )
    assert 0.049 < whole < 0.05


def test_the_divisions_are_powers_of_two() -> None:
    assert [divisions(n) for n in (1, 2, 3, 4, 5, 9)] == [
        *([], [1], [1, 2], [1, 2], [1, 2, 4], [1, 2, 4, 8]),
    ]


def test_a_night_that_is_twice_as_slow_is_found_at_once() -> None:
    (alarm,) = find_alarms([*QUIET, *TWICE], 0.05)
    assert (alarm.begin, alarm.at, alarm.found, alarm.higher) == (0, 6, 6, True)
    # 5 runs are above the 30 others: 2 of all divisions of 35 runs are so far from the middle.
    assert alarm.p == pytest.approx(2 / math.comb(35, 5))
    assert alarm.needed == pytest.approx(0.05 / 2 / 42 / 3)
    assert places([*QUIET, *TWICE], 0, 6, 12) == (6, 6)


def test_a_change_and_its_mend_are_two() -> None:
    first, second = find_alarms([*QUIET, *TWICE, *QUIET], 0.05)
    assert (first.at, second.begin, second.at) == (6, 6, 12)
    assert first.higher and not second.higher


def test_one_slow_night_is_two_changes() -> None:
    found = find_alarms([*QUIET, *QUIET, TWICE[0], *QUIET], 0.05)
    assert [one.at for one in found] == [12, 13]


def test_nothing_is_found_where_nothing_is() -> None:
    assert find_alarms([[100.0] * 5] * 30, 0.05) == []
    assert find_alarms(QUIET * 5, 0.05) == []
    assert find_alarms([[1.0]], 0.05) == []


def test_runs_that_hang_are_the_worst() -> None:
    hung = [[math.inf] * 5] * 2
    (alarm,) = find_alarms([*QUIET, *hung], 0.05)
    assert alarm.at == 6 and alarm.higher
    # Where more is better the worst is the lowest.
    (alarm,) = find_alarms([*QUIET, *([[-math.inf] * 5] * 2)], 0.05)
    assert alarm.at == 6 and not alarm.higher


@given(points=POINTS)
@settings(max_examples=60)
def test_what_comes_later_takes_nothing_back(points: list[list[float]]) -> None:
    """No change that a night saw is missing in the next: the error rate is that of all nights."""
    counts = [len(find_alarms(points[:n], 0.9)) for n in range(1, len(points) + 1)]
    assert all(before <= after for before, after in pairwise(counts))
    for alarm in find_alarms(points, 0.9):
        assert alarm.begin < alarm.at <= alarm.found and alarm.p <= alarm.needed
        assert places(points, alarm.begin, alarm.at, len(points))[0] <= alarm.at


@given(values=st.lists(WORDS, min_size=2, max_size=9))
@settings(max_examples=60)
def test_a_division_is_tested_as_two_kernels_are(values: list[float]) -> None:
    every = np.array(values)
    sizes = range(1, len(values))
    for size, p in zip(sizes, division_p(every, sizes), strict=True):
        assert p == pytest.approx(float(permutation_p(every[None, -size:], every[None, :-size])[0]))


def test_the_approximation_is_on_the_safe_side() -> None:
    """Of groups that are apart, where the exact p can be counted."""
    few = EXACT_GROUP + 1
    values: Floats = np.arange(EXACT + few, dtype=float)
    (p,) = division_p(values, [few])
    assert 2 / math.comb(len(values), few) < p < 1e-6
    exact = division_p(values, [EXACT_GROUP])[0]
    assert exact == pytest.approx(2 / math.comb(len(values), EXACT_GROUP))


def test_a_place_is_where_the_level_is_another() -> None:
    assert place([*QUIET, *TWICE], 0, 12) == (6, True)
    assert place([*TWICE, *QUIET], 0, 12) == (6, False)
    assert place([[0.0], [0.0], [math.inf]], 0, 3) == (2, True)
    assert place([[math.inf], [math.inf]], 0, 2)[0] == 1


def kernels(folder: Path, nights: Sequence[Sequence[float]], day: int = 1, spec: str = "") -> Path:
    """A campaign of one kernel a night: 6.12.1, 6.12.2 …"""
    labels = {f"6.12.{day + n}": night for n, night in enumerate(nights)}
    plan = "format = 1\n"
    for label in labels:
        plan += f'[[variant]]\nlabel = "{label}"\nkernel = "{spec or "debian:6.12"}"\n'
    for n, label in enumerate(labels):
        date = f"2026-11-{day + n:02d}T01:00:00+0000"
        plan += f'[[run]]\nvariant = "{label}"\nnumber = 1\norder = {n + 1}\ndate = "{date}"\n'
    return campaign(folder, {label: list(night) for label, night in labels.items()}, plan)


def trend(*folders: Path, **how: str) -> Trend:
    return find_trend(load_pool(folders), **how)  # type: ignore[arg-type]


def test_nights_in_folders_of_their_own_are_one_trend(tmp_path: Path) -> None:
    first = kernels(tmp_path / "1", QUIET)
    second = kernels(tmp_path / "2", TWICE[:3], day=7)
    (track,) = trend(first, second).tracks
    (change,) = track.changes
    assert [point.label for point in track.points][change.at] == "6.12.7"
    assert change.verdict == track.verdict == "regressed"
    assert change.ratio is not None and change.low is not None and change.high is not None
    assert 1.8 < change.low < 1.95 < change.ratio < 2.05 < change.high < 2.2
    said = text(trend(first, second))
    assert "6.12.7 regressed: 230.7 s" in said and "found at once" in said
    assert "1.98 times regressed" in said
    found = json.loads(json_text(trend(first, second)))
    assert found["tracks"][0]["changes"][0]["at"] == "6.12.7"
    assert found["tracks"][0]["points"][0]["date"] == "2026-11-01T01:00:00+00:00"


def test_a_change_inside_the_margin_does_not_matter(tmp_path: Path) -> None:
    calm = [[100.0 + 0.1 * run + 0.01 * night for run in range(5)] for night in (1, 0, 2, 1, 0)]
    more = [[1.04 * value for value in night] for night in calm]
    (track,) = trend(kernels(tmp_path, [*calm, *more])).tracks
    assert track.changes[0].verdict == "equivalent" and track.verdict == "undecided"
    assert "6.12.6 changed by less than the margin" in text(trend(tmp_path))


def test_each_kernel_that_was_asked_for_is_a_track_by_date(tmp_path: Path) -> None:
    campaign(tmp_path / "1", {"6.1.9": QUIET[0], "7.2.1": TWICE[0]}, _plan("6.1.9", "7.2.1", 1))
    campaign(tmp_path / "2", {"6.1.10": QUIET[1], "7.2.2": TWICE[1]}, _plan("6.1.10", "7.2.2", 2))
    pooled = load_pool([tmp_path / "1", tmp_path / "2"])
    found = find_trend(pooled, order="date")
    names = {one.name: [point.label for point in one.points] for one in found.tracks}
    assert names == {"debian:6.1": ["6.1.9", "6.1.10"], "debian:7.2": ["7.2.1", "7.2.2"]}
    # The error rate is that of both together.
    assert [one.alpha for one in found.tracks] == [0.025, 0.025]
    (whole,) = find_trend(pooled, order="version").tracks
    assert [one.label for one in whole.points] == ["6.1.9", "6.1.10", "7.2.1", "7.2.2"]
    # 6.1.10 came a night after 7.2.1 and is put before it.
    (note,) = [one for one in find_trend(pooled).notes if "Measured after newer" in one]
    assert "6.1.10" in note and "7.2" not in note


def _plan(first: str, second: str, day: int) -> str:
    plan = "format = 1\n"
    for label in (first, second):
        plan += f'[[variant]]\nlabel = "{label}"\nkernel = "debian:{label.rpartition(".")[0]}"\n'
        date = f"2026-11-{day:02d}T01:00:00+0000"
        plan += f'[[run]]\nvariant = "{label}"\nnumber = 1\ndate = "{date}"\n'
    return plan


def test_versions_are_in_their_order(tmp_path: Path) -> None:
    labels = ["7.3.1", "7.3-rc7", "6.12.9", "6.12.10", "7.3", "mine"]
    campaign(tmp_path, {label: [100.0] for label in labels})
    (track,) = trend(tmp_path).tracks
    assert [one.label for one in track.points] == [
        *("6.12.9", "6.12.10", "7.3-rc7", "7.3", "7.3.1", "mine")
    ]


def test_other_swap_is_another_track(tmp_path: Path) -> None:
    plan = 'format = 1\n[[variant]]\nlabel = "b"\nkernel = "x"\nswap = "zram"\n'
    campaign(tmp_path, {"a": [1.0], "b": [2.0]}, plan)
    assert [one.name for one in trend(tmp_path).tracks] == ["swap disk", "swap zram"]


def test_so_few_runs_are_said_to_be_few(tmp_path: Path) -> None:
    said = text(trend(kernels(tmp_path, [[100.0, 101.0], [200.0, 201.0]])))
    assert "No change is established among 2 kernels; that does not mean" in said
    assert "cannot show a change yet" in said
    assert "is the only kernel so far" in text(trend(kernels(tmp_path / "1", [[1.0]])))


def test_without_a_whole_run_there_is_no_trend(tmp_path: Path) -> None:
    folder = kernels(tmp_path / "c", QUIET)
    for status in folder.rglob("status.json"):
        status.unlink()
    with pytest.raises(UserError, match="no run is complete, there is no trend"):
        main([str(folder)])


def test_status_and_lines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bad, good = kernels(tmp_path / "1", [*QUIET, *TWICE]), kernels(tmp_path / "2", QUIET)
    assert main([str(bad)]) == 0
    assert main([str(bad), "--fail-on", "regressed"]) == Exit.FAILED_ON
    assert "--fail-on: all kernels is regressed" in capsys.readouterr().err
    assert main([str(good), "--fail-on", "regressed,improved"]) == 0
    assert main([str(good), "--fail-on", "undecided", "--json"]) == Exit.FAILED_ON
    with pytest.raises(SystemExit) as caught:
        main([str(good), "--fail-on", "worse"])
    assert caught.value.code == 2
    with pytest.raises(UserError, match="no metric 'x'"):
        main([str(good), "--metric", "x"])
    assert main([str(good), "--metric", "worst"]) == 0
    campaign(tmp_path / "3", {"a": [1.0]})
    with pytest.raises(UserError, match=r"a: plan\.toml has no date"):
        main([str(tmp_path / "3"), "--by", "date"])
