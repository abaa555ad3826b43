# SPDX-License-Identifier: GPL-2.0-or-later
"""Disks for the guest: made without a mount, read back with debugfs."""

import os
import subprocess
from pathlib import Path

import pytest

from errors import UserError
from setup import disk


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
    disk.job_disk(image)
    # CPU time, of children too: others may have the machine meanwhile.
    assert sum(os.times()[:4]) - before < 5
    names = debugfs(image, "ls -p /suite")
    assert "/setup/" in names and "/vm/" in names
    assert not any(f"/{name}/" in names for name in (".git", ".venv", "results", "docs", "graphs"))
    assert "/guest/" in debugfs(image, "ls -p /suite/tests")
    assert "initramfs_init.sh" in debugfs(image, "ls -p /suite/vm")
    assert image.stat().st_size < 6 << 20
