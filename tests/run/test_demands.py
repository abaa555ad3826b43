# SPDX-License-Identifier: GPL-2.0-or-later
"""Memory and disk that are not there are refused before anything is made."""

import os
import re
import stat
import subprocess
from pathlib import Path

import pytest

from errors import Exit, UserError
from run import checks, demands
from run.arguments import parse
from tests.support.suite_copy import SUITE
from workloads import desktop

GIB = 1 << 30


def refused(argv: list[str]) -> str:
    with pytest.raises(UserError) as raised:
        demands.check(parse(argv))
    assert raised.value.status == Exit.USAGE and raised.value.hint
    return str(raised.value)


def test_memory_that_the_host_has_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demands, "host_memory", lambda: 4 * GIB)
    demands.check(parse(["--workload", "seqio", "--memory", "3584M"]))
    said = refused(["--workload", "seqio", "--memory", "900G"])
    assert "921600 MiB" in said and "4096 MiB" in said and "--memory" in said
    # A host that does not say is no reason.
    monkeypatch.setattr(demands, "host_memory", lambda: 0)
    demands.check(parse(["--memory", "900G"]))


def test_properties_of_systemd_oomd_are_refused_with_a_device() -> None:
    message = refused(["--device", "/dev/x", "--slice", "ManagedOOMSwap=kill"])
    assert "systemd tells systemd-oomd" in message and "--remedy systemd-oomd" in message
    demands.check(parse(["--device", "/dev/x", "--slice", "memory.low=50%"]))


def warned(*argv: str) -> list[str]:
    return demands.memory_warnings(parse(list(argv)))


def test_memory_that_the_gitks_leave_empty_is_said() -> None:
    quick = ["--profile", "quick"]
    for enough in ([], quick, ["--memory", "1G", "--gitk", "5"]):
        assert warned(*enough) == []
    (message,) = warned("--memory", "2G")
    assert message == (
        "the gitk's keep only about 742 of 2048 MiB: they will hardly swap, and probably nothing "
        "freezes (give --commit-copies 4)"
    )
    assert warned("--memory", "2G", "--commit-copies", "4") == []
    assert len(warned("--memory", "1G")) == 1
    (message,) = warned("--memory", "1G", *quick, "--every", "50")
    assert message.endswith("(give --commit-copies 8)")
    assert warned("--memory", "1G", *quick, "--commit-copies", "8") == []
    (message,) = warned("--memory", "8G", "--commits", "1000")
    assert message.endswith("(give more --commits or --gitk)")


def test_what_gitks_keep_is_what_was_measured() -> None:
    measured = (SUITE / "docs/example/real-gitk/memory.txt").read_text()
    kib = [float(words) for words in re.findall(r"^([0-9.]+) KiB of anonymous", measured, re.M)]
    alone = parse(["--gitk", "1", "--commits", "20000"])
    for copies, each in ((1, kib[1]), (8, kib[2])):
        commits = desktop.kept(alone, copies) - desktop.PROGRAM
        assert commits == pytest.approx(20_000 * each * 1024, rel=0.07)


def test_what_is_not_known_is_not_warned_of(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    for other in (["--repo", str(tmp_path)], ["--workload", "mixed"], ["--workload", "gitk"]):
        assert warned("--memory", "2G", *other) == []


def test_of_a_plan_with_several_workloads_the_desktop_is_warned_of(tmp_path: Path) -> None:
    path = tmp_path / "plan.toml"
    path.write_text(
        "format = 1\n[parameters]\nmemory = 2147483648\n"
        '[[variant]]\nlabel = "a"\nkernel = "debian:6.12"\nworkload = "mixed"\n'
        '[[variant]]\nlabel = "b"\nkernel = "debian:6.12"\n'
    )
    (message,) = warned("--plan", str(path))
    assert " of 2048 MiB: " in message


def test_with_a_device_it_is_the_memory_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for memory, words in ((0, 0), (GIB, 1), (GIB >> 1, 0), (1024 * GIB, 1)):
        monkeypatch.setattr(demands, "host_memory", lambda memory=memory: memory)
        assert len(warned("--device", "/dev/x")) == words


def test_a_dry_run_says_that_the_memory_stays_empty() -> None:
    command = [str(SUITE / "run_test.sh"), "--dry-run", "--memory", "2G"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.count("they will hardly swap, and probably nothing freezes") == 1


def test_a_dry_run_refuses_in_one_line() -> None:
    command = [str(SUITE / "run_test.sh"), "--dry-run", "--workload", "seqio", "--memory", "900G"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == Exit.USAGE and done.stdout == ""
    assert done.stderr.startswith("run_test.sh: --memory: a VM of 921600 MiB")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("workload", ["memcg-dirty", "shrinker", "desktop"])
def test_a_dry_run_says_what_is_wrong_with_the_device(workload: str, tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    names = {
        str(tmp_path / "none"): "No such file or directory",
        str(tmp_path / "loop"): "Too many levels of symbolic links",
        str(tmp_path): "neither a block device nor a plain file",
    }
    if os.geteuid() == 0:
        os.mknod(tmp_path / "node", stat.S_IFBLK | 0o600, os.makedev(240, 77))
        names[str(tmp_path / "node")] = "No such device or address"
    for name, problem in names.items():
        words = ["--workload", workload, "--device", name, "--out", str(tmp_path / "results")]
        options = parse(words)
        demands.check(options)
        with pytest.raises(UserError, match=problem) as raised:
            checks.check(options)
        assert str(raised.value).startswith(name)


def test_a_dry_run_of_a_device_that_is_not_there_is_refused_in_one_line(tmp_path: Path) -> None:
    name = str(tmp_path / "none")
    words = ["--dry-run", "--workload", "memcg-dirty", "--device", name]
    done = subprocess.run([str(SUITE / "run_test.sh"), *words], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (3, "", 1)
    assert f"{name}: No such file" in done.stderr


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["memcg-dirty", "--load", "size=1G,writers=8"], "8 files of 8,192 MiB do not fit on a VM"),
        (["shrinker", "--load", "copy=3G"], "which has 5,"),
        (["shrinker", "--load", "part=bonnie,bonnie=9999"], "10,238,976 files of 9,999 MiB"),
        (["shrinker", "--load", "part=fsmark,files=9000000"], "9,000,000 files"),
        (["shrinker", "--fs", "ext4"], "98,240 inodes of ext4"),
    ],
)
def test_files_that_the_disk_does_not_hold(
    argv: list[str], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(demands, "host_memory", lambda: 8 * GIB)
    assert words in refused(["--workload", *argv])


@pytest.mark.parametrize("profile", ["quick", "standard", "full"])
@pytest.mark.parametrize("name", ["memcg-dirty", "shrinker", "seqio", "mixed"])
def test_what_a_profile_asks_for_fits(
    name: str, profile: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(demands, "host_memory", lambda: 8 * GIB)
    demands.check(parse(["--workload", name, "--profile", profile]))


def test_a_device_has_the_room_or_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(demands, "host_memory", lambda: 8 * GIB)
    device = tmp_path / "disk"
    for size, fits in ((3 * GIB, False), (6 * GIB, True)):
        with open(device, "wb") as file:
            file.truncate(size)
        argv = ["--workload", "memcg-dirty", "--load", "size=1G", "--device", str(device)]
        if fits:
            demands.check(parse(argv))
        else:
            assert f"2,048 MiB do not fit on {device}, which has 9" in refused(argv)
    with open(device, "wb") as file:
        file.truncate(GIB // 10)
    assert f"{device}: too small" in refused(argv)
    with open(device, "wb") as file:
        file.truncate(6 * GIB)
    # A fifth of this machine's memory, not of a VM's.
    monkeypatch.setattr(demands, "host_memory", lambda: GIB // 4)
    assert "more than a fifth of the machine's 256 MiB" in refused(argv)
    # A desktop needs nothing that is looked at here, nor does a device that is none.
    demands.check(parse(["--device", str(tmp_path / "none")]))


@pytest.mark.parametrize("argv", [["--memory", "400M"], ["--load", "limit=300M"]])
def test_a_group_above_the_machines_own_dirty_limit(argv: list[str]) -> None:
    with pytest.raises(
        UserError, match=r"more than a fifth .*\(give at most \d+M, or more"
    ) as raised:
        parse(["--workload", "memcg-dirty", *argv])
    assert raised.value.status == Exit.USAGE
