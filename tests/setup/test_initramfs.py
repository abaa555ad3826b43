# SPDX-License-Identifier: GPL-2.0-or-later
"""The initramfs: what is in it, read back with another program's cpio."""

import subprocess
from pathlib import Path

import pytest

from setup import cache, initramfs
from tests.setup.test_kernels import tree_of_modules
from tests.support.caches import with_tools


def listing(archive: bytes, *options: str) -> str:
    command = ["busybox", "cpio", *options]
    done = subprocess.run(command, input=archive, capture_output=True, check=True)
    return done.stdout.decode()


def test_contents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with_tools(tmp_path / "cache", monkeypatch)
    kernel = tree_of_modules(tmp_path, "k/virtio_net.ko\n")
    path = initramfs.build(kernel, fs="ext4", crypt=True)
    archive = path.read_bytes()
    names = listing(archive, "-t").split()
    assert {"init", "bin/busybox", "bin/switch_root", "dev/console", "modules.list"} <= set(names)
    assert "modules/unrelated.ko" not in names
    wanted = listing(archive, "-i", "--to-stdout", "modules.list").split()
    assert wanted[:3] == ["virtio_ring.ko", "virtio.ko", "virtio_pci.ko"]
    assert "-ecb.ko" in wanted
    assert all(f"modules/{name.removeprefix('-')}" in names for name in wanted)
    for name in names:
        assert not name.endswith((".xz", ".zst"))


def test_is_built_once_and_again_when_something_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_tools(tmp_path / "cache", monkeypatch)
    kernel = tree_of_modules(tmp_path, "k/virtio_net.ko\n")
    first = initramfs.build(kernel, fs="ext4", crypt=True)
    stamp = first.stat().st_mtime_ns
    assert initramfs.build(kernel, fs="ext4", crypt=True) == first
    assert first.stat().st_mtime_ns == stamp
    assert initramfs.build(kernel, fs="ext4", crypt=False) != first
    folder = tmp_path / "cache" / cache.NAME / "initramfs"
    assert len(list(folder.iterdir())) == 2
