# SPDX-License-Identifier: GPL-2.0-or-later
"""The command line: profiles, what goes together, and what run_test.sh says of it."""

import os
import re
import subprocess
from pathlib import Path

import pytest

from contract.option_rows import PROFILES
from contract.values import size
from contract.variant import Variant
from run.arguments import parse

SUITE = Path(__file__).resolve().parents[2]


def run_test(*argv: str, **env: str) -> "subprocess.CompletedProcess[str]":
    """Run ./run_test.sh from another folder than its own."""
    return subprocess.run(
        [str(SUITE / "run_test.sh"), *argv],
        capture_output=True,
        text=True,
        cwd="/",
        env={**os.environ, **env},
    )


def test_default_is_the_original_test() -> None:
    options = parse([])
    assert options.variants == (Variant("debian:stable"),)
    assert options.memory == 512 << 20
    assert options.gitk == 4
    assert options.commits == 165_000
    assert options.every == 100
    assert options.passes == 1
    assert options.crypt


def test_option_beats_profile() -> None:
    options = parse(["--profile", "quick", "--commits", "1000", "--memory", "300M", "--touch", "0"])
    assert options.commits == 1000
    assert options.memory == 300 << 20
    assert options.touch == 0
    assert options.timeout == PROFILES["quick"].timeout


@pytest.mark.parametrize(
    ("text", "value"), [("1", 1), ("4k", 4096), ("512M", 512 << 20), ("2GiB", 2 << 30)]
)
def test_size(text: str, value: int) -> None:
    assert size(text) == value


@pytest.mark.parametrize(
    "argv",
    [
        ["--memory", "0"],
        ["--memory", "64M"],
        ["--gitk", "0"],
        ["--gitk", "17"],
        ["--every", "-1"],
        ["--label", "../x"],
        ["--label", ""],
        ["--out", ""],
        ["--repo", ""],
        ["--music="],
        ["--device", ""],
        ["--mirror", ""],
        ["--touch", "nan"],
        ["--bare"],
        ["--run-dir", "/x"],
        ["--destroy-data", "/dev/x"],
        ["--device", "/dev/x", "--memory", "512M"],
        ["--device", "/dev/x", "--kernel", "host"],
        ["--no-such-option"],
        ["--kern", "host"],
    ],
)
def test_usage_errors(argv: list[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        parse(argv)
    assert caught.value.code == 2


def test_usage_error_of_the_script_installs_nothing() -> None:
    done = run_test("--gitk", "none")
    assert done.returncode == 2
    assert "not a number of 1 or more: 'none'" in done.stderr
    assert done.stdout == ""


def test_help_has_examples() -> None:
    done = run_test("--help")
    assert done.returncode == 0
    assert "./run_test.sh --profile quick" in done.stdout
    assert "exit status" in done.stdout


def test_dry_run_touches_nothing(tmp_path: Path) -> None:
    # Other tests run at the same time: their runners' folders change, and git's index.
    of_tests = re.compile(r"\.(git|hypothesis|\w+_cache)")
    paths = [path for path in SUITE.iterdir() if not of_tests.fullmatch(path.name)]
    before = {path: path.stat().st_mtime_ns for path in paths}
    done = run_test(
        "--dry-run", "--kernel", "debian:6.1", XDG_CACHE_HOME=str(tmp_path), HOME=str(tmp_path)
    )
    assert done.returncode == 0, done.stderr
    assert list(tmp_path.iterdir()) == []
    assert {path: path.stat().st_mtime_ns for path in paths} == before
    for said in ("debian:6.1", "512 MiB", "dm-crypt", "165,000 commits", "4 gitk's"):
        assert said in done.stdout


def test_dry_run_of_a_device_says_what_it_does_to_the_machine(tmp_path: Path) -> None:
    (tmp_path / "disk").write_bytes(b"")
    os.truncate(tmp_path / "disk", 4 << 30)
    done = run_test("--dry-run", "--device", str(tmp_path / "disk"), "--no-crypt")
    assert done.returncode == 0, done.stderr
    assert "all other swap of this machine: off, and on again after" in done.stdout
    assert "dm-crypt" not in done.stdout


def test_the_folder_that_it_is_called_from_is_not_its_own(tmp_path: Path) -> None:
    for name in ("run", "errors", "contract", "measure"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('not ours')\n")
    for argv in (["--help"], ["--dry-run"], ["--bare"]):
        done = subprocess.run(
            [str(SUITE / "run_test.sh"), *argv], capture_output=True, text=True, cwd=tmp_path
        )
        assert "not ours" not in done.stderr and "Traceback" not in done.stderr, done.stderr
