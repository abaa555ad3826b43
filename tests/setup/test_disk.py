# SPDX-License-Identifier: GPL-2.0-or-later
"""Disks for the guest: made without a mount, read back with debugfs."""

import os
import subprocess
from pathlib import Path

import pytest

from errors import UserError
from setup import disk, guest_suite


def debugfs(image: Path, command: str) -> str:
    done = subprocess.run(
        ["debugfs", "-R", command, str(image)], check=True, capture_output=True, text=True
    )
    return done.stdout


def test_pack(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    (folder / "deep/er").mkdir(parents=True)
    (folder / "deep/er/data").write_bytes(bytes(range(256)) * 9000)
    (folder / "run").write_text("#!/bin/sh\n")
    (folder / "run").chmod(0o755)
    (folder / "link").symlink_to("run")
    image = tmp_path / "out.ext4"
    disk.pack({"a": folder, "b": folder / "deep"}, image, "job")
    subprocess.run(["e2fsck", "-fn", str(image)], check=True, capture_output=True)
    assert debugfs(image, "cat /a/run") == "#!/bin/sh\n"
    assert "Mode:  0755" in debugfs(image, "stat /a/run")
    assert "User:     0   Group:     0" in debugfs(image, "stat /a/run")
    assert 'Fast link dest: "run"' in debugfs(image, "stat /a/link")
    assert f"Size: {256 * 9000}" in debugfs(image, "stat /b/er/data")
    assert "has_journal" not in debugfs(image, "features")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in", "out.ext4"]


def test_pack_of_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no such folder"):
        disk.pack({"a": tmp_path / "none"}, tmp_path / "out", "job")
    assert list(tmp_path.iterdir()) == []


def test_the_job_disk_holds_the_suite_and_is_quick(tmp_path: Path) -> None:
    image = tmp_path / "job.ext4"
    before = sum(os.times()[:4])
    disk.job_disk(image, guest_suite.folder())
    # CPU time, of children too: others may have the machine meanwhile.
    assert sum(os.times()[:4]) - before < 5
    names = debugfs(image, "ls -p /suite")
    assert "/setup/" in names and "/vm/" in names
    others = (
        ".git",
        ".venv",
        "benchmarks",
        "docs",
        "graphs",
        "machines",
        "results",
        "run",
        "tests",
    )
    assert not any(f"/{name}/" in names for name in others)
    assert "/guest_init.sh/" in debugfs(image, "ls -p /suite/vm")
    assert ".py/" not in debugfs(image, "ls -p /suite/vm")
    assert image.stat().st_size < 8 << 20


def test_a_job_disk_of_a_test_has_more(tmp_path: Path) -> None:
    image = tmp_path / "job.ext4"
    disk.job_disk(image, guest_suite.folder(("run", "tests/guest")))
    assert "/guest/" in debugfs(image, "ls -p /suite/tests")
    assert "/live.py/" in debugfs(image, "ls -p /suite/run")


def test_the_same_files_are_the_same_bytes(tmp_path: Path) -> None:
    """Whatever their times, owners and attributes are, and in which order they came."""
    images = []
    for number, names in enumerate((("x", "y", "z"), ("z", "y", "x"))):
        folder = tmp_path / f"in-{number}"
        folder.mkdir(mode=0o755 - 0o50 * number)
        for name in names:
            (folder / name).write_text(name * 5000)
            (folder / name).chmod(0o644 + 0o20 * number)
            os.utime(folder / name, (1e9 + number, 1e9 - number))
            if number and os.geteuid() == 0:
                os.chown(folder / name, 7, 8)
        images.append(tmp_path / f"{number}.ext4")
        disk.pack({"a": folder}, images[-1], "job")
    first, second = (image.read_bytes() for image in images)
    assert first == second
    assert "mtime: 0x4aeec9c0" in debugfs(images[0], "stat /a/x")
