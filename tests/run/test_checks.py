# SPDX-License-Identifier: GPL-2.0-or-later
"""What a command names is looked at before anything is made, by a run and a dry run alike."""

import subprocess
from pathlib import Path

import pytest

from errors import Exit, UserError
from run import checks, demands, dry_run, main
from run.arguments import parse
from run.identity import identified
from run.measure_command import guest_command
from setup import cache
from tests.run.test_campaign import TWO, finish, opened


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def free_bytes(folder: Path) -> int:
    """Of every machine that these tests are run on."""
    return 0 if folder.is_relative_to("/proc") else 50 << 30


def lines_of(argv: list[str]) -> list[str]:
    options = identified(parse(argv))
    checks.check(options)
    return dry_run.lines(options)


@pytest.mark.parametrize(
    ("argv", "status", "said"),
    [
        (["--repo", "/nonexistent"], 3, "no such folder: /nonexistent"),
        (["--repo", "/"], 3, "git"),
        (["--music", "/etc/passwd"], 3, "--music /etc/passwd: no such folder"),
        (["--mirror", "foo"], 2, "not a mirror's URL: 'foo'"),
        (["--out", "/proc/x"], 3, "must be free at /proc/x|/proc may not be written to"),
        (["--out", "/etc/passwd"], 3, "/etc/passwd is no folder"),
        (["--out", "/etc/passwd/x"], 3, "/etc/passwd is no folder"),
        (["--kernel", "debian:"], 2, "not a suite or version"),
        (["--kernel", "/nonexistent"], 2, "unknown kernel"),
        (["--kernel", "/etc/passwd"], 3, "not a Linux kernel image"),
        (["--qemu", "/nonexistent"], 3, "/nonexistent does not run"),
        (["--device", "/nonexistent"], 3, "/nonexistent: No such file"),
        (["--device", "/etc/passwd"], 3, "/etc/passwd is too small"),
        (["--jobs", "256"], 3, "a run's disks, 256 at once"),
        ([*TWO, "--baseline", "nonesuch"], 2, "--baseline nonesuch: no such variant"),
        ([*TWO, "--baseline", "6.12.3"], 2, "there are debian:6.1, debian:7.2"),
        ([*TWO, "--baseline", "debian:6.12"], 2, "--baseline debian:6.12: no such variant"),
        ([*TWO, "--label", "a", "--label", "b", "--baseline", "6.1"], 2, "there are a, b"),
    ],
)
def test_a_dry_run_refuses_what_its_run_would(
    tmp_path: Path,
    argv: list[str],
    status: int,
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    if "--out" not in argv:
        argv = [*argv, "--out", str(tmp_path / "out")]
    monkeypatch.setattr(
        "vm.room.free_bytes", lambda folder: 0 if folder.parts[1] == "proc" else 50 << 30
    )
    monkeypatch.setattr("sys.argv", ["run_test.sh", "--dry-run", *argv])
    with pytest.raises(UserError, match=said) as refused:
        dry_run.main()
    assert refused.value.status == status and "\n" not in str(refused.value)
    assert capsys.readouterr().out == ""
    assert not cache.place().exists() and not (tmp_path / "out").exists()
    if "--device" not in argv:
        monkeypatch.setattr(main, "in_vms", lambda *_: pytest.fail("it was begun"))
        monkeypatch.setattr("sys.argv", ["run_test.sh", *argv])
        with pytest.raises(UserError, match=said) as refused:
            main.main()
        assert refused.value.status == status


def test_kvm_that_is_not_there_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vm.probe._may_open", lambda: False)
    with pytest.raises(UserError, match="KVM does not work here: /dev/kvm is missing"):
        lines_of(["--accel", "kvm", "--out", str(tmp_path)])


@pytest.mark.parametrize("baseline", ["6.1.170", "7.2", "debian:6.1", "debian:7.2"])
def test_a_baseline_that_may_be_is_taken(tmp_path: Path, baseline: str) -> None:
    assert lines_of([*TWO, "--baseline", baseline, "--out", str(tmp_path)])


def test_what_packages_are_missing_ends_a_dry_run_that_may_not_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "setup").mkdir()
    script = tmp_path / "setup/packages.sh"
    script.write_text("#!/bin/sh\necho 'missing: gnuplot' >&2\nexit 3\n")
    script.chmod(0o755)
    monkeypatch.setattr("contract.checkout.ROOT", tmp_path)
    assert "packages: missing: gnuplot" in lines_of(["--out", str(tmp_path)])
    with pytest.raises(UserError, match="missing: gnuplot"):
        lines_of(["--out", str(tmp_path), "--no-install"])


def test_a_baseline_is_named_by_what_was_asked_for(tmp_path: Path) -> None:
    """Nobody knows the version that debian:7.2 will be."""
    out = tmp_path / "mine"
    finish(opened(out, "--out", str(out), *TWO, "--baseline", "debian:7.2"))
    assert 'baseline = "7.2"' in (out / "plan.toml").read_text()
    opened(out, "--resume", str(out), *TWO, "--baseline", "debian:6.1", "--runs", "2")
    assert 'baseline = "6.1"' in (out / "plan.toml").read_text()


def test_a_baseline_that_is_several_is_refused(tmp_path: Path) -> None:
    out = tmp_path / "mine"
    argv = ["--out", str(out), "--kernel", "debian:6.1", "--swap", "disk", "--swap", "none"]
    with pytest.raises(
        UserError, match=r"debian:6.1: several variants \(there are 6.1-disk, 6.1-no"
    ):
        opened(out, *argv, "--baseline", "debian:6.1")


def test_a_baseline_is_a_path_as_its_kernel_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    options = identified(
        parse(["--kernel", "./linux", "--kernel", "host", "--baseline", "./linux"])
    )
    assert options.baseline == options.variants[0].kernel == str(tmp_path / "linux")


def test_a_real_history_is_read_as_far_as_the_profile_says_or_commits_or_as_there_are(
    tmp_path: Path,
) -> None:
    repo = tmp_path / "repo"
    git = ["git", "-C", str(repo), "-c", "user.name=x", "-c", "user.email=x@example"]
    subprocess.run(["git", "init", "-q", str(repo)], check=True)
    for n in range(3):
        subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", str(n)], check=True)
    argv = ["--profile", "quick", "--repo", str(repo)]
    assert parse(argv).commits == 40_000 and identified(parse(argv)).commits == 3
    assert identified(parse([*argv, "--commits", "9"])).commits == 3
    options = identified(parse([*argv, "--commits", "2"]))
    assert options.commits == options.parameters["commits"] == 2
    assert "--commits 2 " in guest_command(options, options.variants[0])
    said = f"history: 2 commits (the newest of {repo}), cloned to"
    assert any(line.startswith(said) for line in dry_run.lines(options))


@pytest.mark.parametrize(
    "name", ["music", "repo", "out", "kernel", "workload", "swap", "memory", "plan"]
)
def test_a_value_that_argparse_would_lose_is_a_usage_error(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as refused:
        parse([f"--{name}=--"])
    assert refused.value.code == Exit.USAGE
    assert capsys.readouterr().err == f"run_test.sh: --{name}=--: '--' is no value (see --help)\n"
    plan = tmp_path / "plan.toml"
    plan.write_text('[parameters]\nload = "--"\n')
    with pytest.raises(SystemExit):
        parse(["--plan", str(plan)])
    assert "plan.toml: " in capsys.readouterr().err


def test_demands_come_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demands, "host_memory", lambda: 1 << 30)
    monkeypatch.setattr("sys.argv", ["run_test.sh", "--dry-run", "--memory", "4G"])
    with pytest.raises(UserError, match="--memory: a VM of 4096 MiB"):
        dry_run.main()
