# SPDX-License-Identifier: GPL-2.0-or-later
"""python3 -m run.one: one run of a plan, from a partial folder to its number; its VM is played."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.fleet import played_jobs
from contract.run_files import META, STATUS
from errors import Exit, UserError
from run import one
from run.jobs import job as jobs
from run.jobs import plan_file, run_copies
from run.run_folders import completed
from setup import cache
from tests.support import played_session
from vm import emulator, session
from vm.disk_spec import DiskModel

SUITE = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def played(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("DESKTOP_FREEZE_LOCKS", str(tmp_path))
    monkeypatch.setattr(session, "run", played_session.run)
    monkeypatch.setattr(emulator, "find", played_session.find)
    settings = tmp_path / "played.json"
    settings.write_text("{}")
    monkeypatch.setenv(played_session.PLAYED, str(settings))
    return settings


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    path = tmp_path / "results" / "plan.json"
    path.parent.mkdir()
    plan_file.write(path, [played_jobs.job(number=number) for number in (1, 2)])
    return path


def do(monkeypatch: pytest.MonkeyPatch, plan: Path, *more: str) -> int:
    """What the command's exit status would be."""
    words = more or ("6.12", "1")
    monkeypatch.setattr(sys, "argv", ["run.one", str(plan), *words])
    return one.main()


def test_a_job_is_the_same_after_its_file(plan: Path) -> None:
    before = played_jobs.job(number=2, disk_iops=57, more_disks=2, changed=("memory",), mips=500)
    disk = DiskModel(True, 57, 58_000_000, parallel=1, depth=32, queues=1)
    timing = before.guest.timing._replace(disk=disk)
    before = replace(before, guest=replace(before.guest, append="quiet", timing=timing))
    plan_file.write(plan, [before])
    after = plan_file.read(plan, "6.12", 2)
    assert jobs.to_json(after) == jobs.to_json(before)
    assert after == before
    text = plan.read_text()
    assert str(cache.place()) not in text  # but by their places in the cache


def test_it_is_done_once_and_renamed(
    plan: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert do(monkeypatch, plan) == Exit.OK
    assert completed(plan.parent / "6.12") == {1}
    assert [path.name for path in (plan.parent / "6.12").iterdir()] == ["1"]
    meta = json.loads((plan.parent / "6.12/1" / META).read_text())
    assert (meta["seed"], meta["label"], meta["order"]) == (1, "6.12", 1)
    assert do(monkeypatch, plan) == Exit.OK
    assert "is there already" in capsys.readouterr().out


def test_what_was_cut_short_keeps_its_partial_folder(
    plan: Path, played: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    played.write_text('{"state": "aborted"}')
    assert do(monkeypatch, plan, "6.12", "1", "--host", "a.b", "--job", "7") == Exit.MISSING
    (folder,) = (plan.parent / "6.12").iterdir()
    assert folder.name == "1.partial-a_b-7"
    assert json.loads((folder / STATUS).read_text())["state"] == "aborted"
    with pytest.raises(UserError, match="give another --job"):
        do(monkeypatch, plan, "6.12", "1", "--host", "a.b", "--job", "7")


def test_a_panic_is_a_result(plan: Path, played: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    played.write_text('{"state": "panicked"}')
    assert do(monkeypatch, plan) == Exit.KERNEL_LOST
    assert completed(plan.parent / "6.12") == {1}


def test_a_second_copy_has_to_be_the_same(
    plan: Path, played: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two that are done at the same time: the first that is renamed wins."""
    run = plan.parent / "6.12" / "1"
    first = run.with_name("first")

    def late(*arguments: object, **more: object) -> tuple[str, str]:
        found = played_session.run(*arguments, **more)  # type: ignore[arg-type]
        first.rename(run)
        return found

    assert do(monkeypatch, plan) == Exit.OK
    for other, differs in (("{}", False), ('{"bytes": "others"}', True)):
        run.rename(first)
        played.write_text(other)
        monkeypatch.setattr(session, "run", late)
        if differs:
            with pytest.raises(UserError, match=r"differs from it in latency-gitk-1\.log\."):
                do(monkeypatch, plan)
        else:
            assert do(monkeypatch, plan) == Exit.OK
    assert sorted(path.name for path in run.parent.iterdir()) == ["1", "1.differs-1"]
    assert "others" not in (run / "latency-gitk-1.log").read_text()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("6.12", "3"), "has no run 3 of 6.12 .it has 6.12 1, 6.12 2"),
        (("7.2", "1"), "has no run 1 of 7.2"),
    ],
)
def test_a_run_that_no_plan_has_is_refused(
    plan: Path, words: tuple[str, ...], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UserError, match=said) as refused:
        do(monkeypatch, plan, *words)
    assert refused.value.status == Exit.USAGE


@pytest.mark.parametrize("text", ["", "{}", "[1]", '{"format": 1, "jobs": [{}]}', '{"format": 1}'])
def test_what_is_no_plan_is_refused(plan: Path, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plan.write_text(text)
    with pytest.raises(UserError) as refused:
        do(monkeypatch, plan)
    assert refused.value.status == Exit.USAGE and "\n" not in str(refused.value)


def test_another_file_than_the_plans_is_refused(
    plan: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (cache.place() / "images/r").write_text("another root")
    with pytest.raises(UserError, match=r"root image: .*/images/r has SHA-256") as refused:
        do(monkeypatch, plan)
    assert refused.value.status == Exit.MISSING
    assert not (plan.parent / "6.12").exists()


def test_a_host_without_the_suites_packages_can_do_it() -> None:
    """Only Python itself: there is no .venv on a host that was sent a tarball."""
    code = "import sys; import run.one; print([m for m in ('rich', 'tomli_w')"
    code += " if m in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-S", "-c", code], cwd=SUITE, capture_output=True, text=True
    )
    assert done.stdout == "[]\n", done.stderr


def test_names_of_partial_folders_are_names() -> None:
    assert run_copies.partial_name(3, "a/../b", "7[2]") == "3.partial-a_b-7_2_"
