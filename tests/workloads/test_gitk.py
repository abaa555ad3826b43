# SPDX-License-Identifier: GPL-2.0-or-later
"""The workload gitk: what it refuses, how it starts the real program, what it prints."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from contract.command_line import parse_measured
from errors import Exit, UserError
from run import dry_run
from run.arguments import parse
from run.jobs.job import Streams
from run.measure_command import measure_argv
from workloads import gitk, registry, x_server
from workloads.workload import WorkloadEnvironment

GITK = ["--workload", "gitk", "--profile", "quick"]
FAKE_ONLY = {"passes", "touch", "step", "commit_copies"}
BOTH = """
[parameters]
profile = "quick"
passes = 3
[[variant]]
workload = "gitk"
[[variant]]
workload = "desktop"
"""
# In place of gitk: three readings of 60 commits, then the end; its last line is the real one's.
PLAYED = """\
proc getcommitlines {fd} {global commitidx curview; incr commitidx($curview) 60}
proc chewcommits {} {}
proc getcommits {ids} {
    global viewcomplete
    foreach n {1 2 3} {getcommitlines none; chewcommits}
    set viewcomplete(0) 1
    chewcommits
}
set curview 0
set commitidx(0) 0
set viewcomplete(0) 0
puts "[lindex $argv 0] in [pwd]"

getcommits {}
"""


@pytest.mark.parametrize(
    "words", [["--touch", "0.5"], ["--step", "512"], ["--passes", "2"], ["--commit-copies", "2"]]
)
def test_options_of_fake_gitk_are_refused(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        parse([*GITK, *words])
    assert caught.value.code == Exit.USAGE
    why = f": {words[0]} is for a workload with fake_gitk's, not for gitk "
    assert why in capsys.readouterr().err


def test_options_of_fake_gitk_are_not_recorded() -> None:
    options = parse([*GITK, "--gitk", "2"])
    assert options.parameters["gitk"] == 2
    assert not FAKE_ONLY & options.parameters.keys()
    assert Streams.of(parse(["--workload", "gitk", "--profile", "full"]), []).passes == 1


def test_beside_the_desktop_only_its_runs_have_options_of_fake_gitk(tmp_path: Path) -> None:
    path = tmp_path / "plan.toml"
    path.write_text(BOTH)
    options = parse(["--plan", str(path)])
    assert options.parameters["passes"] == 3
    for variant, used in zip(options.variants, (set(), FAKE_ONLY), strict=True):
        alone = options.of(variant)
        assert FAKE_ONLY & alone.parameters.keys() == used
        words = measure_argv(options, variant, repo="/r", music="/m", run_dir="/d")
        assert {name for name in FAKE_ONLY if f"--{name.replace('_', '-')}" in words} == used
        measured = parse_measured([*words, "--device", "/dev/x"], registry.with_gitks())
        assert measured.parameters.keys() == alone.parameters.keys()


def test_a_history_that_is_too_short_is_refused() -> None:
    why = "--load commits=4000: the history has 3000 (--commits)"
    with pytest.raises(UserError, match=re.escape(why)) as caught:
        parse([*GITK, "--commits", "3000"])
    assert caught.value.status == Exit.USAGE


def test_each_window_reads_what_was_asked_and_progress_counts_that() -> None:
    options = parse([*GITK, "--gitk", "3", "--load", "commits=700", "--every", "50"])
    environment = WorkloadEnvironment(Path("/scratch"), "vda", Path("/figures"))
    programs = gitk.programs(options, environment)
    assert [stream.name for stream in programs] == ["gitk-1", "gitk-2", "gitk-3"]
    for stream in programs:
        assert stream.waits and stream.env["DISPLAY"] == x_server.DISPLAY
        assert stream.env["XAUTHORITY"] == str(x_server.key_file(environment))
        assert stream.argv[-2:] == ["700", "50"]
    assert Streams.of(options, []).commits == 700
    assert options.memory == (230 << 20) + gitk.MORE_MEMORY
    (line,) = [line for line in dry_run.lines(options) if "gitk's" in line]
    assert "real gitk's" in line and "commits=700" in line and "touch" not in line


def test_its_packages_are_in_the_further_image() -> None:
    assert {"gitk", "xvfb"} <= set(registry.packages("gitk"))
    assert registry.packages("desktop") == ()


@pytest.fixture
def window(tmp_path: Path) -> list[str]:
    """The command of a window whose gitk is PLAYED."""
    shell = shutil.which("tclsh")
    if shell is None:
        pytest.skip("tclsh is not installed: the VM's test runs the real gitk")
    (tmp_path / "gitk").write_text(PLAYED)
    return [shell, str(x_server.SCRIPT), str(tmp_path / "gitk"), "700", "50"]


def test_a_line_for_every_so_many_commits_and_one_at_the_end(window: list[str]) -> None:
    # tclsh has no windows to draw.
    script = Path(window[2]).read_text()
    Path(window[2]).write_text("proc update {} {}\n" + script)
    done = subprocess.run(window, input="\n", capture_output=True, text=True, cwd="/")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        "--max-count=700 in /",
        "ready",
        *("pass 1 commits 60", "pass 1 commits 120", "pass 1 commits 180"),
    ]


def test_it_ends_with_the_recorder(window: list[str]) -> None:
    done = subprocess.run(window, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    assert done.returncode == 1 and done.stdout.splitlines()[-1] == "ready"


@pytest.mark.parametrize(
    "change", [("getcommits {}\n", "read {}\n"), ("puts", "getcommits {}\nputs")]
)
def test_another_gitk_is_refused_in_a_line(window: list[str], change: tuple[str, str]) -> None:
    path = Path(window[2])
    path.write_text(path.read_text().replace("\n" + change[0], "\n" + change[1]))
    done = subprocess.run(window, input="\n", capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr == f"{path} does not begin to read commits where this suite expects it\n"


def test_an_x_server_that_does_not_start_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = tmp_path / "Xvfb"
    server.write_text("#!/bin/sh\necho '(EE) no display for you' >&2\nexit 1\n")
    server.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with (
        pytest.raises(UserError, match=re.escape("did not start: (EE) no display for you")),
        x_server.running(tmp_path / "key"),
    ):
        pass
    assert not (tmp_path / "key").exists()


def test_the_x_server_ends_with_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    server = tmp_path / "Xvfb"
    answer = f"echo $$ >{tmp_path}/pid\necho 2009 >/dev/fd/$3\n"
    server.write_text(f"#!/bin/sh\n{answer}exec sleep 100\n")
    server.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with x_server.running(tmp_path / "key"):
        assert (tmp_path / "key").stat().st_mode & 0o777 == 0o600
        pid = int((tmp_path / "pid").read_text())
        assert Path(f"/proc/{pid}").exists()
    assert not Path(f"/proc/{pid}").exists()
