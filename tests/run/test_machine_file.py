# SPDX-License-Identifier: GPL-2.0-or-later
"""A machine's file of the user's: its campaign goes on without it, and not with another one."""

from pathlib import Path

import pytest

from errors import UserError
from run.arguments import parse
from run.campaign import Campaign
from tests.contract.test_machine_model import WHOLE
from tests.run.test_campaign import opened

ONE = ["--kernel", "debian:6.1"]


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    path = tmp_path / "mine.toml"
    path.write_text(WHOLE)
    return path


@pytest.fixture
def out(tmp_path: Path, mine: Path) -> Path:
    """A campaign that was begun with that file."""
    folder = tmp_path / "out"
    opened(folder, "--out", str(folder), *ONE, "--machine", str(mine))
    return folder


def refused(capsys: pytest.CaptureFixture[str], *argv: str) -> str:
    with pytest.raises(SystemExit, match="2"):
        parse(list(argv))
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    return said


def test_it_goes_on_without_the_file(mine: Path, out: Path) -> None:
    assert (out / "mine.toml").read_text() == WHOLE
    began = parse(["--resume", str(out)])
    assert began.machine == str(mine)
    mine.unlink()
    found = parse(["--resume", str(out)])
    assert found.machine == str(out / "mine.toml") and found.disk_iops == began.disk_iops
    opened(out, "--resume", str(out), "--runs", "2")
    moved = out.rename(out.with_name("moved"))
    opened(moved, "--resume", str(moved), "--runs", "3")
    assert parse(["--plan", str(moved / "plan.toml")]).machine == str(moved / "mine.toml")


def test_without_a_copy_either_it_is_one_line(
    mine: Path, out: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mine.unlink()
    (out / "mine.toml").unlink()
    said = refused(capsys, "--resume", str(out))
    assert f"{out}/plan.toml: " in said and f"{mine}: No such file" in said


def test_what_it_says_counts_and_not_where_it_lies(
    tmp_path: Path, mine: Path, out: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a").mkdir()
    other = mine.rename(tmp_path / "a" / "yours.toml")
    opened(out, "--resume", str(out), "--machine", f"{tmp_path}/a/../a/yours.toml")
    assert parse(["--machine", f"{tmp_path}/a/../a/yours.toml"]).machine == str(other)
    other.write_text(WHOLE.replace("9000", "77"))
    with pytest.raises(UserError, match="holds runs with disk_iops 9000, and this asks for 77"):
        opened(out, "--resume", str(out), "--machine", str(other))
    with pytest.raises(UserError, match="holds runs with disk_iops 9000, and this asks for 77"):
        opened(out, "--out", str(out), *ONE, "--machine", str(other))


def test_an_edited_file_is_refused_by_the_field(
    mine: Path, out: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mine.write_text("# The same, in other words.\n" + WHOLE)
    opened(out, "--resume", str(out), "--runs", "2")
    mine.write_text(WHOLE.replace("9000", "77"))
    said = f"{mine} is no longer what {out}/plan.toml was made with: disk.iops was 9000, and is 77"
    assert said in refused(capsys, "--resume", str(out))
    assert said in refused(capsys, "--plan", str(out / "plan.toml"))
    copy = parse(["--resume", str(out), "--machine", str(out / "mine.toml")])
    assert copy.disk_iops == 9000
    assert parse(["--plan", str(out / "plan.toml"), "--machine", str(mine)]).disk_iops == 77
    with pytest.raises(UserError, match="disk_iops 9000"):
        Campaign(parse(["--resume", str(out), "--machine", str(mine)]), [])


def test_an_edit_of_what_an_option_changed_is_one_too(tmp_path: Path, mine: Path) -> None:
    argv = ["--out", str(tmp_path / "out"), *ONE, "--machine", str(mine), "--disk-iops", "77"]
    opened(tmp_path / "out", *argv)
    mine.write_text(WHOLE.replace("9000", "8000"))
    with pytest.raises(UserError, match=r"another mine.toml: disk.iops was 9000, and is 8000"):
        opened(tmp_path / "out", *argv)


def test_a_plan_of_the_users_takes_a_file_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "plans").mkdir()
    plan = tmp_path / "plans" / "asked.toml"
    plan.write_text('[machine]\nmachine = "mine.toml"\n')
    beside = plan.with_name("mine.toml")
    beside.write_text(WHOLE)
    monkeypatch.chdir(tmp_path)
    assert parse(["--plan", "plans/asked.toml"]).machine == str(beside)
    (tmp_path / "mine.toml").write_text(WHOLE.replace("9000", "77"))
    assert parse(["--plan", "plans/asked.toml"]).disk_iops == 77


def test_no_machine_is_called_like_the_plan(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "plan.toml").write_text(WHOLE)
    assert "own file is called so" in refused(capsys, "--machine", str(tmp_path / "plan.toml"))
