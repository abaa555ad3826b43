# SPDX-License-Identifier: GPL-2.0-or-later
"""What setup.crypt_lvm refuses, on real loop devices and files of this host.

The stack itself needs dm-crypt: tests/guest/crypt_lvm_check.py asserts it inside a guest.
"""

import contextlib
import os
import shutil
import struct
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from errors import Exit, UserError
from setup.crypt_lvm import activation, creation, mapper, ownership, swaps
from setup.crypt_lvm.stack import (
    Stack,
    load_state,
    process_of,
    record_of,
    save_state,
    state_lock,
)
from setup.crypt_lvm.stack_build import split
from setup.devices import check, loop_devices, use
from setup.devices.check import MINIMUM, check_device
from setup.devices.device import MIB, opened

ROOT = Path(__file__).resolve().parents[2]
PATH = check.SBIN
SIZE = 1100 * MIB


def tool(name: str) -> str:
    """Full path of a tool of the host, or skip."""
    found = shutil.which(name, path=PATH)
    if found is None:
        pytest.skip(f"{name} is not installed here")
    return found


@pytest.fixture
def image(tmp_path: Path) -> Iterator[str]:
    """An empty (sparse) file that is large enough; whoever uses it gives it blocks."""
    path = tmp_path / "disk.img"
    with open(path, "wb") as handle:
        handle.truncate(SIZE)
    yield str(path)
    path.unlink()


def record(dev: str, *, crypt: bool = True) -> dict[str, Any]:
    """The record of a dead run's stack on dev, of which nothing stands any more."""
    stack = Stack(
        device=dev,
        prefix="",
        crypt="/dev/mapper/crypt-partition" if crypt else None,
        vg="crypt-volume",
        fs_device="/dev/crypt-volume/crypt-logical",
        swap_device="/dev/crypt-volume/crypt-swap",
        fs="ext4",
        mount="",
        disk=dev,
        record=record_of(Path(dev).stat()),
    )
    with opened(dev) as device:
        return {
            **{"stage": "created", "identity": device.identity(), "path": device.path},
            **{"loop": None, "asked": 0, "swaps": [], "mounted": None, "stack": asdict(stack)},
            "owner": {"pid": 2**22, "start": "1"},
        }


@contextlib.contextmanager
def looped(path: str) -> Iterator[str]:
    """A loop device on a file, or skip with the reason."""
    if os.geteuid() != 0:
        pytest.skip("loop devices need root")
    done = subprocess.run(
        [tool("losetup"), "--find", "--show", path], capture_output=True, text=True
    )
    if done.returncode != 0:
        pytest.skip(f"no loop devices here: {done.stderr.strip()}")
    loop = done.stdout.strip()
    try:
        yield loop
    finally:
        subprocess.run([tool("losetup"), "--detach", loop], check=True)


@pytest.fixture
def loop(image: str) -> Iterator[str]:
    """An empty loop device."""
    with looped(image) as device:
        yield device


def loops_on(path: str) -> list[str]:
    """Loop devices on a file or block device."""
    return loop_devices.on(loop_devices.backing_of(Path(path).stat()))


def refused(dev: str, *words: str, destroy_data: str | None = None) -> UserError:
    """check_device must refuse dev, in one line with all these words."""
    with pytest.raises(UserError) as caught:
        check_device(dev, destroy_data=destroy_data)
    text = str(caught.value)
    assert "\n" not in text
    assert all(word in text for word in (dev, *words)), text
    return caught.value


def test_an_empty_file_and_an_empty_device_pass(image: str) -> None:
    check_device(image, destroy_data=None)
    with looped(image) as device:
        check_device(device, destroy_data=None)
        check_device(device, destroy_data=device)


def test_wrong_names(tmp_path: Path) -> None:
    refused(str(tmp_path / "none"), "No such file")
    refused(str(tmp_path), "neither a block device nor a plain file")
    assert refused("/dev/null", "neither").status == Exit.USAGE


def test_too_small(tmp_path: Path) -> None:
    path = tmp_path / "small"
    with open(path, "wb") as handle:
        handle.truncate(MINIMUM - 1)
    refused(str(path), "too small", f"at least {MINIMUM // MIB}")


def test_destroy_data_must_name_the_same_device(image: str) -> None:
    error = refused(image, "--destroy-data names /dev/sdz9", destroy_data="/dev/sdz9")
    assert error.status == Exit.USAGE


@pytest.mark.parametrize("where", ["first", "last"])
def test_data_without_a_signature_is_refused(image: str, where: str) -> None:
    with open(image, "r+b") as handle:
        handle.seek(MIB - 1 if where == "first" else SIZE - MIB)
        handle.write(b"\x01")
    refused(image, "not empty", f"its {where} MiB", f"--destroy-data {image}")
    check_device(image, destroy_data=image)
    with opened(image) as device:
        device.claim()
        device.zero_ends()
    check_device(image, destroy_data=None)


def test_a_disk_of_an_array_is_named(image: str) -> None:
    """As mdadm writes it, version 1.2 (drivers/md/md.c, mdp_superblock_1 and calc_sb_1_csum)."""
    block = bytearray(1024)
    struct.pack_into("<IIII16s32s", block, 0, 0xA92B4EFC, 1, 0, 0, bytes(range(16)), b"box:0")
    struct.pack_into("<QIIQII", block, 72, 1, 0, SIZE // 512, 0, 0, 1)  # raid1, of one disk
    struct.pack_into("<QQQ", block, 128, 2048, SIZE // 512 - 2048, 8)
    total = sum(struct.unpack("<64I", block[:256]))
    struct.pack_into("<I", block, 216, (total & 0xFFFFFFFF) + (total >> 32))
    with open(image, "r+b") as handle:
        handle.seek(4096)
        handle.write(block)
    refused(image, "a linux_raid_member volume labelled box:0", f"--destroy-data {image}")


def test_a_file_system_is_named_with_its_label(loop: str) -> None:
    subprocess.run([tool("mkfs.ext4"), "-q", "-L", "precious", loop], check=True)
    refused(loop, "an ext4 file system labelled precious", f"--destroy-data {loop}")
    check_device(loop, destroy_data=loop)


def test_a_swap_area_is_named(loop: str) -> None:
    subprocess.run([tool("mkswap"), "-q", loop], check=True, capture_output=True)
    refused(loop, "a swap area")


def test_a_partition_table_is_named(image: str) -> None:
    # A DOS table with one entry; sfdisk need not be installed.
    sector = bytearray(512)
    sector[446:462] = bytes([0, 2, 2, 0, 0x83, 9, 9, 9]) + (2048).to_bytes(4, "little") * 2
    sector[510:] = b"\x55\xaa"
    with open(image, "r+b") as handle:
        handle.write(sector)
    refused(image, "a partition table (dos)")


def test_mounted_is_refused_whatever_is_said(loop: str, tmp_path: Path) -> None:
    subprocess.run([tool("mkfs.ext4"), "-q", loop], check=True)
    place = tmp_path / "a place"
    place.mkdir()
    done = subprocess.run([tool("mount"), loop, str(place)], capture_output=True, text=True)
    if done.returncode != 0:
        pytest.skip(f"cannot mount here: {done.stderr.strip()}")
    try:
        refused(loop, f"is mounted on {place}")
        refused(loop, f"is mounted on {place}", destroy_data=loop)
    finally:
        subprocess.run([tool("umount"), str(place)], check=True)


def test_held_exclusively_is_refused(loop: str) -> None:
    held = os.open(loop, os.O_RDWR | os.O_EXCL)
    try:
        refused(loop, "exclusively", destroy_data=loop)
    finally:
        os.close(held)
    check_device(loop, destroy_data=None)


def test_a_file_that_a_loop_device_uses_is_refused(image: str) -> None:
    with looped(image) as device:
        refused(image, f"in use by {device}", destroy_data=image)
    check_device(image, destroy_data=None)


def test_a_device_that_a_loop_device_uses_is_refused(loop: str) -> None:
    with looped(loop) as device:
        refused(loop, f"in use by {device}", destroy_data=loop)
    check_device(loop, destroy_data=None)


def test_a_read_only_device_is_refused(loop: str) -> None:
    subprocess.run([tool("blockdev"), "--setro", loop], check=True)
    try:
        refused(loop, "read-only", destroy_data=loop)
    finally:
        subprocess.run([tool("blockdev"), "--setrw", loop], check=True)


def test_a_refusal_leaves_nothing_behind(image: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if os.geteuid() != 0:
        pytest.skip("create needs root")
    monkeypatch.setattr(mapper, "require_kernel", lambda crypt: None)
    with open(image, "r+b") as handle:
        handle.write(b"data")
    with pytest.raises(UserError, match="not empty"), ownership.prepared(image):
        pytest.fail("must not get here")
    assert load_state(image) is None and loops_on(image) == []
    assert Path(image).read_bytes()[:4] == b"data"


@pytest.mark.skipif(os.geteuid() != 0, reason="create needs root")
def test_a_failing_step_is_undone_and_named(image: str, monkeypatch: pytest.MonkeyPatch) -> None:
    tool("losetup")
    monkeypatch.setattr(mapper, "require_kernel", lambda crypt: None)
    monkeypatch.setattr(mapper, "volume_groups", lambda: set())

    def fail(device: str, name: str) -> None:
        assert loops_on(image) == [device]
        with open(device, "r+b") as handle:
            handle.write(b"half")
        mapper.run("sh", "-c", "echo noise >&2; echo the last line >&2; exit 1")

    monkeypatch.setattr(mapper, "open_crypt", fail)
    with pytest.raises(UserError) as caught:
        creation.create(image)
    if "losetup" in str(caught.value) or "no direct IO" in str(caught.value):
        pytest.skip(f"no loop devices here: {caught.value}")
    assert str(caught.value).endswith("the last line") and "noise;" not in str(caught.value)
    assert load_state(image) is None and loops_on(image) == []
    check_device(image, destroy_data=None)


@pytest.mark.skipif(os.geteuid() != 0, reason="create needs root")
@pytest.mark.parametrize("crypt", [True, False])
def test_data_that_came_after_a_dead_run_are_kept(loop: str, crypt: bool) -> None:
    with state_lock():
        save_state(record(loop, crypt=crypt))
    subprocess.run([tool("mkfs.ext4"), "-q", "-L", "precious", loop], check=True)
    ownership.clear_dead(loop)
    assert load_state(loop) is None
    refused(loop, "an ext4 file system labelled precious")


@pytest.mark.skipif(os.geteuid() != 0, reason="create needs root")
def test_a_file_without_direct_io_is_refused(image: str, monkeypatch: pytest.MonkeyPatch) -> None:
    tool("losetup")
    monkeypatch.setattr(mapper, "require_kernel", lambda crypt: None)
    monkeypatch.setattr(mapper, "volume_groups", lambda: set())

    monkeypatch.setattr(loop_devices, "DIRECT_IO", 0)
    with pytest.raises(UserError) as caught:
        creation.create(image)
    if "losetup" in str(caught.value):
        pytest.skip(f"no loop devices here: {caught.value}")
    assert str(caught.value).startswith(f"{image} has no direct IO")
    assert load_state(image) is None and loops_on(image) == []
    assert Path(image).stat().st_blocks * 512 >= SIZE  # and it got its blocks


def test_commands_say_one_line_and_the_right_status(tmp_path: Path) -> None:
    def command(*words: str) -> subprocess.CompletedProcess[str]:
        line = [sys.executable, "-m", "setup.crypt_lvm", *words]
        return subprocess.run(line, cwd=ROOT, capture_output=True, text=True)

    assert command("--help").returncode == 0
    assert command("create").returncode == 2
    assert command("create", "/dev/x", "--fs", "vfat").returncode == 2
    done = command("activate", str(tmp_path / "none"))
    assert done.returncode == 3 and done.stderr.count("\n") == 1
    done = command("status", str(tmp_path / "none"))
    assert done.returncode == 0 and '"state": "none"' in done.stdout


@given(st.integers(255, 300_000), st.integers(1, 1 << 40))
def test_split_gives_both_enough_and_no_more_than_there_is(extents: int, swap_bytes: int) -> None:
    extent = 4 * MIB
    fs, swap = split(extents, extent, swap_bytes)
    assert fs + swap <= extents
    assert fs * extent >= 512 * MIB and fs >= min(extents // 3, (16 << 30) // extent)
    assert swap * extent >= min(swap_bytes, 500 * MIB)
    assert (swap - 1) * extent < swap_bytes


def test_split_of_the_least_device() -> None:
    # LVM keeps the first MiB and rounds down to its extents.
    extents = (MINIMUM - MIB) // (4 * MIB)
    assert split(extents, 4 * MIB, 2 << 30) == (128, extents - 128)
    with pytest.raises(UserError, match="too small"):
        split(200, 4 * MIB, 2 << 30)


def test_priorities_are_given_again(monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[tuple[str, ...]] = []
    monkeypatch.setattr(swaps, "is_on", lambda path: path == "/dev/on")
    monkeypatch.setattr(swaps, "run", lambda *words, **_: ran.append(words))
    swaps.restore([["/dev/b", -3], ["/dev/a", -2], ["/dev/zram0", 100], ["/dev/on", 5]])
    assert ran == [
        ("swapon", "-p", "100", "/dev/zram0"),
        ("swapon", "/dev/a"),
        ("swapon", "/dev/b"),
    ]


def test_names_as_device_mapper_spells_them() -> None:
    assert mapper.mangled("crypt-volume", "crypt-swap") == "crypt--volume-crypt--swap"
    assert use.unescape("/mnt/a\\040b\\134c") == "/mnt/a b\\c"


def test_where_the_file_system_goes_nothing_else_may_be(tmp_path: Path) -> None:
    activation.check_mount(tmp_path / "none")
    (tmp_path / "empty").mkdir()
    activation.check_mount(tmp_path / "empty")
    (tmp_path / "empty/theirs").write_text("")
    for place in ("empty", "empty/theirs"):
        with pytest.raises(UserError, match=r"exists and is not an empty folder .*move it away"):
            activation.check_mount(tmp_path / place)
    with pytest.raises(UserError, match="in use as a mount point"):
        activation.check_mount(Path("/proc"))


def test_a_process_is_told_from_a_later_one_of_its_pid() -> None:
    me = process_of(os.getpid())
    assert me and me == process_of(os.getpid()) and me["start"].isdigit()
    assert process_of(None) is None
    assert process_of(2**22 + 1) == {"pid": 2**22 + 1, "start": ""}
