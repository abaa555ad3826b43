# SPDX-License-Identifier: GPL-2.0-or-later
"""Campaigns of several nights are one campaign, if their facts agree; a run counts once."""

import shutil
from pathlib import Path

import pytest

from analysis.compare import main
from analysis.reading.load import load_campaign
from analysis.verdicts.compare import compare
from analysis.verdicts.pool import load_pool
from benchmarks.synthetic_results.make import make_campaign
from errors import UserError
from graphs.report import make_report
from tests.support.verdicts import campaign, stalling_run

OLD: list[float | str] = [60.0, 62.0, 63.0, 64.0, 66.0]
NEW: list[float | str] = [90.0, 92.0, 93.0, 94.0, 96.0]
OWN = {"clock": {"kind": "guest"}}


def seeded(folder: Path, runs: list[float | str], first: int = 1, **facts: object) -> Path:
    for number, stalled in enumerate(runs, 1):
        about = {**OWN, "seed": first + number - 1, **facts}
        stalling_run(folder / str(number), stalled, **about)
    return folder


def test_one_folder_is_its_campaign(tmp_path: Path) -> None:
    folder = campaign(tmp_path, {"a": OLD, "b": NEW})
    assert load_pool([folder]).pooled == []
    assert [run.path for run in load_pool([folder]).runs] == [
        run.path for run in load_campaign(folder).runs
    ]


def test_kernels_of_two_nights_have_a_verdict(tmp_path: Path) -> None:
    first, second = campaign(tmp_path / "1", {"a": OLD}), campaign(tmp_path / "2", {"b": NEW})
    found = compare(load_pool([first, second]))
    assert found.baseline == "a" and found.primary["b"].verdict == "regressed"
    # Neither was judged before, against the other: the verdict has the whole level.
    assert found.level == 0.05
    assert f"Pooled: 5 runs of {second}." in found.notes


def test_runs_of_one_kernel_are_numbered_on_and_cost_a_look(tmp_path: Path) -> None:
    seeded(tmp_path / "1" / "a", OLD)
    seeded(tmp_path / "1" / "b", NEW)
    seeded(tmp_path / "2" / "a", [61.5, 62.5], first=6)
    pooled = load_pool([tmp_path / "1", tmp_path / "2"])
    assert [run.number for run in pooled.runs if run.variant == "a"] == [1, 2, 3, 4, 5, 6, 7]
    assert "a/1 is 6 here, a/2 is 7 here" in pooled.pooled[1]
    assert pooled.plan.extended == (5,) and compare(pooled).level == 0.025


@pytest.mark.parametrize(("of_baseline", "extended"), [(4, ()), (10, (3,))])
def test_three_runs_beside_ten_were_a_look(
    tmp_path: Path, of_baseline: int, extended: tuple[int, ...]
) -> None:
    seeded(tmp_path / "1" / "a", [60.0 + n for n in range(of_baseline)])
    seeded(tmp_path / "1" / "b", NEW[:3])
    seeded(tmp_path / "2" / "b", NEW[3:], first=6)
    assert load_pool([tmp_path / "1", tmp_path / "2"]).plan.extended == extended


def test_the_same_run_counts_once(tmp_path: Path) -> None:
    seeded(tmp_path / "1" / "a", OLD)
    shutil.copytree(tmp_path / "1", tmp_path / "2")
    seeded(tmp_path / "2" / "b", NEW)
    # Another run of one seed is a run.
    seeded(tmp_path / "3" / "a", [61.5])
    pooled = load_pool([tmp_path / one for one in "123"])
    assert sorted(run.variant for run in pooled.runs) == ["a"] * 6 + ["b"] * 5
    notes = "\n".join(pooled.pooled)
    assert f"5 runs of {tmp_path / '2'} are there already, with the same variant, seed" in notes
    assert f"1 run of {tmp_path / '3'} with the variant and seed of an earlier run" in notes


def test_runs_that_are_alike_in_one_campaign_are_several(tmp_path: Path) -> None:
    campaign(tmp_path / "1", {"a": [0.0] * 5})
    campaign(tmp_path / "2", {"b": [0.0] * 5})
    assert len(load_pool([tmp_path / "1", tmp_path / "2"]).runs) == 10


def test_a_bundle_holds_runs_of_its_folder(tmp_path: Path) -> None:
    folder = make_campaign(tmp_path / "1", 2, 2)
    make_report(load_campaign(folder), tmp_path / "report")
    pooled = load_pool([folder, tmp_path / "report" / "bug-report.tar.gz"])
    assert len(pooled.runs) == 4
    assert "4 runs of" in pooled.pooled[2] and "there already" in pooled.pooled[2]


def test_campaigns_of_two_machines_are_refused_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = campaign(tmp_path / "1", {"a": OLD})
    second = campaign(tmp_path / "2", {"b": NEW}, fs="xfs")
    with pytest.raises(UserError) as caught:
        load_pool([first, second])
    text = str(caught.value)
    assert text.startswith(f"{second} cannot be pooled with {first}: fs differs: ext4 in a/1")
    assert "\n" not in text and "--force" in text
    assert main([str(first), str(second), "--force"]) == 0
    assert "fs differs" in capsys.readouterr().out


def test_another_kernel_of_one_name_is_refused(tmp_path: Path) -> None:
    for night, digest in enumerate("xy", 1):
        kernel = {"release": "6.1", "image_digest": digest}
        seeded(tmp_path / str(night) / "a", OLD, first=10 * night, kernel=kernel)
    with pytest.raises(UserError, match=r"kernel\.image_digest differs: x in a/1.*, y in a/6"):
        load_pool([tmp_path / "1", tmp_path / "2"])


def test_plans_of_two_margins_are_refused(tmp_path: Path) -> None:
    first = campaign(tmp_path / "1", {"a": OLD}, "format = 1\nmargin = 0.1\n")
    second = campaign(tmp_path / "2", {"b": NEW}, "format = 1\nmargin = 0.2\n")
    with pytest.raises(UserError, match=r"margin differs: 0\.1 and 0\.2"):
        load_pool([first, second])


def test_what_one_folder_lacks_names_the_folder(tmp_path: Path) -> None:
    first, second = campaign(tmp_path / "1", {"a": OLD}), campaign(tmp_path / "2", {"b": NEW})
    (second / "b" / "5" / "status.json").unlink()
    found = compare(load_pool([first, second]))
    assert any(f"b/5 (no status.json) in {second}" in note for note in found.notes)
