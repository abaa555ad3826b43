# SPDX-License-Identifier: GPL-2.0-or-later
"""reading.load: which folders are runs, what is named and left out, and what is never opened."""

import json
import os
import shutil
from pathlib import Path

import pytest

from analysis.reading.files import LARGEST, read_file
from analysis.reading.load import load_campaign
from analysis.reading.places import natural
from analysis.text.summary_files import summary, try_compare
from benchmarks.synthetic_results.make import make_campaign, meta, write_run
from errors import UserError
from graphs.report import make_report
from tests.support.loading import one_run


def test_incomplete_runs_are_named_and_left_out(tmp_path: Path) -> None:
    write_run(tmp_path / "a" / "1", {"meta.json": json.dumps(meta("a"))})
    write_run(tmp_path / "a" / "2", {"meta.json": json.dumps(meta("a"))}, state=None)
    write_run(tmp_path / "a" / "3", {"status.json": "{"}, state=None)
    (tmp_path / "report").mkdir()
    campaign = load_campaign(tmp_path)
    assert [run.number for run in campaign.runs] == [1]
    assert campaign.incomplete == ["a/2 (no status.json)", "a/3 (status.json cannot be read)"]


def test_a_run_that_was_set_aside_is_named_and_never_counted(tmp_path: Path) -> None:
    whole: dict[str, str | bytes] = {"meta.json": json.dumps(meta("a"))}
    for name, state in (("1", "completed"), ("1.cut-1", None), ("1.cut-2", "aborted")):
        write_run(tmp_path / "a" / name, whole, state)
    for stray in ("1.cut", "2.cut-x", "x.cut-1", "1.cut-1x", "x1.cut-1"):
        write_run(tmp_path / "a" / stray, whole)
    campaign = load_campaign(tmp_path)
    assert [(run.variant, run.number) for run in campaign.runs] == [("a", 1)]
    assert campaign.set_aside == ["a/1.cut-1 (no status.json)", "a/1.cut-2 (aborted)"]
    assert campaign.incomplete == []
    assert "a/1.cut-1 (no status.json), a/1.cut-2 (aborted)" in " ".join(summary(campaign).split())


def test_a_second_copy_of_a_run_that_differs_is_named_and_never_counted(tmp_path: Path) -> None:
    whole: dict[str, str | bytes] = {"meta.json": json.dumps(meta("a"))}
    for name in ("1", "1.differs-1", "2.partial-beta-7"):
        write_run(tmp_path / "a" / name, whole)
    campaign = load_campaign(tmp_path)
    assert [(run.variant, run.number) for run in campaign.runs] == [("a", 1)]
    said = " ".join(summary(campaign).split())
    assert "a/1.differs-1: a second copy of a run, and not the same bytes" in said


def test_a_run_knows_its_place_in_the_campaign(tmp_path: Path) -> None:
    for n, order in ((1, 7), (2, None), (3, True), (4, None)):
        facts = meta("a") if order is None else meta("a", order=order)
        write_run(tmp_path / "a" / str(n), {"meta.json": json.dumps(facts)})
    rows = [("a", 1, 1), ("a", 2, 2), ("a", 3, 3)]
    (tmp_path / "plan.toml").write_text(
        "format = 1\n"
        + "".join(f"[[run]]\nvariant='{v}'\nnumber={n}\norder={o}\n" for v, n, o in rows)
    )
    (tmp_path / "a" / "config").write_bytes(b"CONFIG_X=y\n# \xff\n")
    campaign = load_campaign(tmp_path)
    assert [run.order for run in campaign.runs] == [7, 2, 3, None]
    assert campaign.configs == {"a": "CONFIG_X=y\n# \ufffd\n"} and not campaign.problems


@pytest.mark.parametrize("file", ["status.json", "meta.json", "plan.toml"])
def test_an_unknown_format_version_is_refused_in_one_line(tmp_path: Path, file: str) -> None:
    run = write_run(tmp_path / "a" / "1", {"meta.json": json.dumps(meta("a"))})
    if file == "plan.toml":
        (tmp_path / file).write_text("format = 2\n")
    else:
        (run / file).write_text(json.dumps({**meta("a"), "format": 2}))
    with pytest.raises(UserError, match="format version '2' is unknown") as refused:
        load_campaign(tmp_path)
    assert file in str(refused.value) and "\n" not in str(refused.value)


def test_no_link_is_followed_out_of_the_results(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    write_run(secret / "1", {"meta.json": json.dumps(meta("s")), "kern.log": "secret\n"})
    run = write_run(tmp_path / "c" / "a" / "1", {"meta.json": json.dumps(meta("a"))})
    (run / "latency-gitk-1.log").symlink_to(secret / "1" / "kern.log")
    (run / "kern.log").symlink_to(secret / "1" / "kern.log")
    (run / "vmstat.tsv").symlink_to("/dev/zero")
    (run.parent / "2").symlink_to(secret / "1")
    (run.parent / "config").symlink_to(secret / "1" / "kern.log")
    (tmp_path / "c" / "b").symlink_to(secret)
    (tmp_path / "c" / "plan.toml").symlink_to(secret / "1" / "kern.log")
    campaign = load_campaign(tmp_path / "c")
    assert [run.path for run in campaign.runs] == [run]
    assert campaign.incomplete == ["a/2 (a link, not followed)", "b (a link, not followed)"]
    assert campaign.configs == {} and campaign.plan.text == ""
    one = campaign.runs[0]
    assert list(one.kern_lines()) == [] and not one.has_kern_log and not one.streams
    for name in ("latency-gitk-1.log", "kern.log", "vmstat.tsv"):
        assert any(warning.startswith(name) and "link" in warning for warning in one.warnings)


def test_a_pipe_or_a_device_in_the_results_does_not_make_it_wait(tmp_path: Path) -> None:
    run = write_run(tmp_path / "a" / "1", {"meta.json": json.dumps(meta("a"))})
    write_run(tmp_path / "a" / "2", {"meta.json": json.dumps(meta("a"))}, None)
    for name in ("latency-gitk-1.log", "kern.log", "vmstat.tsv", "events.jsonl"):
        os.mkfifo(run / name)
    os.mkfifo(tmp_path / "a" / "2" / "status.json")
    os.mkfifo(tmp_path / "plan.toml")
    campaign = load_campaign(tmp_path)
    assert campaign.incomplete == ["a/2 (status.json cannot be read)"]
    one = campaign.runs[0]
    assert list(one.kern_lines()) == [] and not one.has_kern_log
    assert "vmstat.tsv: is a link or no file, not read" in one.warnings
    assert campaign.problems == ["plan.toml: is a link or no file, not read"]


def test_a_huge_file_is_read_in_part_and_that_is_said(tmp_path: Path) -> None:
    problems: list[str] = []
    (tmp_path / "some").write_bytes(b"12345678")
    assert read_file(tmp_path / "some", problems, 5) == b"12345" and len(problems) == 1
    run = write_run(tmp_path / "a" / "1", {"meta.json": json.dumps(meta("a"))})
    for name in ("latency-gitk-1.log", "vmstat.tsv"):
        with (run / name).open("wb") as sparse:
            sparse.truncate(LARGEST + 1)
    warnings = load_campaign(tmp_path).runs[0].warnings
    assert "vmstat.tsv: only its first 64 MiB are read" in warnings
    assert "latency-gitk-1.log: only its first 32 MiB are read" in warnings


@pytest.mark.parametrize("where", ["", "k", "k/1"])
def test_a_campaign_a_variant_and_a_run_can_be_loaded(tmp_path: Path, where: str) -> None:
    one_run(tmp_path, {})
    run = load_campaign(tmp_path / where).runs[0]
    assert (run.variant, run.number) == ("k", 1)


def test_what_the_user_can_put_right_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no such folder"):
        load_campaign(tmp_path / "no")
    with pytest.raises(UserError, match="File name too long"):
        load_campaign(tmp_path / ("n" * 300))
    with pytest.raises(UserError, match="holds no runs"):
        load_campaign(tmp_path)
    write_run(tmp_path / "a" / "1", {"meta.json": json.dumps({**meta("a"), "format": 2})})
    with pytest.raises(UserError, match="format version '2' is unknown"):
        load_campaign(tmp_path)


def test_versions_sort_as_versions() -> None:
    names = ["6.12", "7.2", "6.1", "5.10", "7.2-rc1", "\u00b2", "9" * 5000, "x"]
    assert sorted(names, key=natural)[:4] == ["x", "\u00b2", "5.10", "6.1"]


@pytest.mark.parametrize("is_hostile", [False, True])
def test_a_synthetic_campaign_is_one_that_a_real_run_could_have_left(
    tmp_path: Path, is_hostile: bool
) -> None:
    campaign = load_campaign(
        make_campaign(tmp_path, 3, 2, all_counters=not is_hostile, is_hostile=is_hostile)
    )
    assert len(campaign.runs) == 6 and not campaign.incomplete and not campaign.problems
    assert all(run.warnings == [] for run in campaign.runs)
    assert {len(run.streams) for run in campaign.runs} == {6}
    assert sorted(run.order or 0 for run in campaign.runs) == [1, 2, 3, 4, 5, 6]
    assert all(campaign.plan.orders[run.variant, run.number] == run.order for run in campaign.runs)
    assert [run.state for run in campaign.runs].count("hung") == 1
    first, *others = campaign.configs.values()
    assert all(0 < len(set(first.splitlines()) ^ set(other.splitlines())) < 20 for other in others)
    if not is_hostile:
        assert len(campaign.runs[0].tables["vmstat"].names) == 200


def test_many_runs_are_read_by_several_processes_as_by_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_campaign(tmp_path, 3, 2)
    (tmp_path / "6.1" / "1" / "vmstat.tsv").write_text("x")
    (tmp_path / "7.2" / "1" / "status.json").unlink()
    alone = load_campaign(tmp_path)
    monkeypatch.setattr("analysis.reading.load.LARGE", 2)
    many = load_campaign(tmp_path)
    assert many.incomplete == alone.incomplete == ["7.2/1 (no status.json)"]
    assert [run.path for run in many.runs] == [run.path for run in alone.runs]
    for one, other in zip(many.runs, alone.runs, strict=True):
        assert (one.order, one.warnings, one.meta) == (other.order, other.warnings, other.meta)
        assert one.streams["gitk-1"].gap.tolist() == other.streams["gitk-1"].gap.tolist()
        assert one.tables.keys() == other.tables.keys()
    (tmp_path / "6.1" / "1" / "meta.json").write_text('{"format": 9}')
    with pytest.raises(UserError, match="format version '9' is unknown") as refused:
        load_campaign(tmp_path)
    assert str(refused.value).endswith("(this suite reads version 1)")


def test_a_name_that_is_no_utf_8_is_left_out_and_that_is_said(tmp_path: Path) -> None:
    campaign = make_campaign(tmp_path / "c", 2, 1)
    shutil.copytree(campaign / "6.1", campaign / os.fsdecode(b"6.1-\xff\xe9"))
    shutil.copytree(campaign / "6.1" / "1", campaign / "6.1" / os.fsdecode(b"2\xff"))
    run = campaign / "6.1" / "1"
    (run / os.fsdecode(b"latency-\xe9.log")).write_text("")
    found = load_campaign(campaign)
    assert set(found.variants()) == {"6.1", "6.12"} and len(found.runs) == 2
    assert found.problems == [
        "6.1-\ufffd\ufffd: its name is no UTF-8, left out",
        "6.1/2\ufffd: its name is no UTF-8, left out",
    ]
    assert "latency-\ufffd.log: its name is no UTF-8, left out" in found.runs[0].warnings
    assert make_report(found, tmp_path / "r").errors == []
    alone = load_campaign(campaign / os.fsdecode(b"6.1-\xff\xe9"))
    assert [run.variant for run in alone.runs] == ["6.1-\ufffd\ufffd"]
    assert make_report(alone, tmp_path / "s").made


def test_a_folder_that_is_no_number_is_no_run(tmp_path: Path) -> None:
    for name in ("1", "01", "\u00b2", "\u0663", "9" * 10):
        write_run(tmp_path / "a" / name, {"meta.json": json.dumps(meta("a"))})
    assert [run.path.name for run in load_campaign(tmp_path).runs] == ["1"]


def test_nested_facts_are_damage_that_is_named(tmp_path: Path) -> None:
    campaign = make_campaign(tmp_path, 2, 1)
    facts = json.dumps(meta("6.1"))[:-1] + ', "knobs": ' + "[" * 900 + "]" * 900 + "}"
    (campaign / "6.1" / "1" / "meta.json").write_text(facts)
    found = load_campaign(campaign)
    assert "meta.json: missing or damaged" in found.runs[0].warnings[0]
    assert summary(found, try_compare(found))
