# SPDX-License-Identifier: GPL-2.0-or-later
"""The statuses that run_test.sh ends with, and what it says when its report cannot be written."""

import errno
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.synthetic_results.make import make_campaign
from contract import checkout
from contract.run_files import ABORTED, COMPLETED, HUNG, OOM, UNFINISHED
from errors import Exit, UserError, run_command
from run.arguments import parse
from run.main import exit_status, report
from run.runner import Outcome
from tests.support.suite_copy import SUITE
from tests.support.verdicts import campaign


def test_a_file_of_somebody_else_s_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    def main() -> int:
        raise PermissionError(errno.EACCES, "Permission denied", "/home/else/bzImage")

    assert run_command("x", main) == Exit.MISSING
    said = "x: /home/else/bzImage: Permission denied (this user may not use it)\n"
    assert capsys.readouterr().err == said


def test_a_mistake_is_one_line_without_escape_sequences(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def main() -> int:
        raise UserError("no \x1b[2Jsuch\nfile \udcff", status=Exit.USAGE)

    assert run_command("x", main) == Exit.USAGE
    assert capsys.readouterr().err == "x: no ?[2Jsuch file ?\n"


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_file_never_gets_the_number_of_a_closed_output(tmp_path: Path, closed: str) -> None:
    code = (
        "import os, sys; from errors import run_command\n"
        "def main():\n"
        f"    with open({str(tmp_path / 'file')!r}, 'w') as file: return file.fileno()\n"
        "sys.exit(run_command('x', main))"
    )
    command = ["sh", "-c", f'exec "$@" {closed}', "sh", sys.executable, "-c", code]
    done = subprocess.run(command, cwd=SUITE, capture_output=True)
    assert done.returncode > 2


@pytest.mark.parametrize(
    "words",
    [
        ["latency_output.py", "-o--"],
        ["latency_output.py", "--stream=--", "--", "echo", "--x=--"],
        ["-m", "fake_player", "--music-from=--", "--to", "x"],
        ["-m", "fake_gitk", "--repo=--"],
        ["-m", "setup.kernels", "--mirror=--"],
        ["-m", "run.arguments", "--music=--"],
    ],
)
def test_a_value_that_argparse_would_lose_is_a_usage_error_of_each_command(
    words: list[str],
) -> None:
    done = subprocess.run([sys.executable, *words], cwd=SUITE, capture_output=True, text=True)
    assert done.returncode == Exit.USAGE and done.stderr.count("\n") == 1
    assert done.stderr.endswith(f"{words[1 if words[0] != '-m' else 2]}: '--' is not a value\n")


def test_what_follows_two_dashes_is_not_an_option() -> None:
    words = ["latency_output.py", "--", "echo", "--x=--"]
    done = subprocess.run([sys.executable, *words], cwd=SUITE, capture_output=True, text=True)
    assert done.returncode == 0 and "--x=--" in done.stdout


def test_an_output_that_is_full_is_one_line() -> None:
    code = (
        "import sys; from errors import run_command\n"
        "sys.exit(run_command('x', lambda: print(1) or 0))"
    )
    with open("/dev/full", "wb") as full:
        command = [sys.executable, "-c", code]
        done = subprocess.run(command, cwd=SUITE, stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == Exit.MISSING
    assert done.stderr == "x: an output: No space left on device (free some space)\n"


def test_a_summary_in_whose_way_something_is_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = make_campaign(tmp_path, 1)
    (folder / "report").write_text("a file")
    assert report(folder) == Exit.MISSING
    said = capsys.readouterr()
    assert "report/summary.txt: Not a directory" in said.out + said.err
    assert "Traceback" not in said.out + said.err


def test_the_report_has_the_status_of_fail_on(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    runs = ([10.0, 11.0, 12.0, 13.0, 14.0], [20.0, 21.0, 22.0, 23.0, 24.0])
    folder = campaign(tmp_path, dict(zip("ab", runs, strict=True)))
    assert report(folder, ["undecided", "failed"]) == report(folder) == Exit.OK
    assert report(folder, ["regressed", "failed"]) == Exit.FAILED_ON
    said = capfd.readouterr().err
    assert said.count("--fail-on") == 1
    assert "graphs: --fail-on: b is regressed (stalled seconds per run)\n" in said
    assert '<failure type="regressed"' in (folder / "report" / "junit.xml").read_text()
    one = campaign(tmp_path / "one", {"a": runs[0]})
    assert report(one, ["regressed"]) == Exit.MISSING
    assert "nothing is compared" in capfd.readouterr().err
    assert (one / "report" / "index.html").exists()


def test_of_several_statuses_the_gravest_is_taken(tmp_path: Path) -> None:
    def status(*states: str, stopped: bool = False, drawn: int = Exit.OK) -> Exit:
        return exit_status(Outcome(tmp_path, [*states]), stopped, drawn)

    for drawn in (Exit.OK, Exit.FAILED_ON, Exit.MISSING, 1, -9):
        assert status(ABORTED, HUNG, stopped=True, drawn=drawn) is Exit.INTERRUPTED
        assert status(ABORTED, HUNG, drawn=drawn) is Exit.MISSING
        assert status(HUNG, COMPLETED, drawn=drawn) is Exit.KERNEL_LOST
        assert status(HUNG, UNFINISHED, drawn=drawn) is Exit.KERNEL_LOST
    assert status(COMPLETED, OOM, drawn=Exit.FAILED_ON) is Exit.FAILED_ON
    assert status(UNFINISHED, COMPLETED, drawn=Exit.FAILED_ON) is Exit.FAILED_ON
    assert status(UNFINISHED, COMPLETED, drawn=Exit.MISSING) is Exit.MISSING
    assert status(UNFINISHED, OOM, COMPLETED) is Exit.UNFINISHED
    assert status(COMPLETED, drawn=1) is status(COMPLETED, drawn=-9) is Exit.MISSING
    assert status(COMPLETED, OOM) is Exit.OK


def test_verdicts_that_cannot_be_are_usage(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one, two = ["--kernel", "debian:6.1"], ["--kernel", "debian:7.2"]
    assert parse([*one, *two, "--fail-on", "regressed,failed"]).fail_on == ("regressed", "failed")
    assert parse([*one, "--fail-on", "failed"]).fail_on == ("failed",)
    assert parse(one).fail_on == ()
    for argv in ([*one, "--fail-on", "undecided"], [*one, *two, "--fail-on", "worse"]):
        with pytest.raises(SystemExit) as ended:
            parse(argv)
        assert ended.value.code == Exit.USAGE and capsys.readouterr().err.count("\n") == 1
    # A campaign that is there may hold the baseline.
    held = make_campaign(tmp_path, 1)
    assert parse([*one, "--fail-on", "undecided", "--out", str(held)]).fail_on == ("undecided",)


def test_the_version_is_the_suites_and_names_its_commit() -> None:
    commands = ([str(SUITE / "run_test.sh")], [sys.executable, "-m", "analysis.compare"])
    for command in commands:
        done = subprocess.run([*command, "--version"], cwd=SUITE, capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.endswith(f" {checkout.VERSION}, commit {checkout.commit()}\n")


def test_a_dry_run_is_never_a_run(tmp_path: Path) -> None:
    """run_test.sh gives --dry-run to run.dry_run. run.main refuses the option and starts no VM."""
    words = ("--profile", "quick", "--out", str(tmp_path / "out"), "--dry-run")
    command = [sys.executable, "-m", "run.main", *words]
    done = subprocess.run(command, cwd=SUITE, capture_output=True, text=True, timeout=60)
    assert done.returncode == Exit.USAGE and not (tmp_path / "out").exists()
    assert done.stderr.count("\n") == 1 and "./run_test.sh --dry-run" in done.stderr
