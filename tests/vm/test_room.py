# SPDX-License-Identifier: GPL-2.0-or-later
"""A run's room on the host: its throw-away disks."""

import errno
import os
import resource
from pathlib import Path

import pytest

from errors import UserError
from vm.room import REPORT_RESERVE_BYTES, check_space, copied_disk, reserved

HOLE = 1 << 20


@pytest.mark.parametrize("ends_in_data", [True, False])
def test_a_copy_has_the_bytes_and_the_holes(tmp_path: Path, ends_in_data: bool) -> None:
    image = tmp_path / "image"
    with open(image, "wb") as file:
        file.seek(HOLE)
        file.write(os.urandom(200_000))
        file.seek(3 * HOLE)
        file.write(b"end" if ends_in_data else b"")
        file.truncate(3 * HOLE + 3)
    before = image.read_bytes()
    with copied_disk(tmp_path, image) as (copy, reader):
        assert os.pread(reader, 4 * HOLE, 0) == before
        assert os.fstat(copy).st_blocks * 512 < 2 * HOLE
        os.pwrite(copy, b"guest's", HOLE)
        assert list(tmp_path.iterdir()) == [image]
    assert image.read_bytes() == before


def test_no_room_for_it(tmp_path: Path) -> None:
    image = tmp_path / "image"
    image.write_bytes(bytes(HOLE))
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (HOLE // 2, before[1]))
    try:
        with pytest.raises(UserError, match="File too large"), copied_disk(tmp_path, image):
            pytest.fail("there was room")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_the_host_is_full_midway(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    image = tmp_path / "image"
    image.write_bytes(bytes(HOLE))
    sendfile, sizes = os.sendfile, iter([4096])

    def some(to: int, source: int, offset: int, count: int) -> int:
        if (size := next(sizes, None)) is None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return sendfile(to, source, offset, size)

    monkeypatch.setattr(os, "sendfile", some)
    with pytest.raises(UserError, match="No space left"), copied_disk(tmp_path, image):
        pytest.fail("there was room")
    monkeypatch.setattr(os, "sendfile", lambda *args: 0)
    with pytest.raises(UserError, match="cut short"), copied_disk(tmp_path, image):
        pytest.fail("it was whole")


def test_what_is_too_full_is_named_with_what_names_another_place(tmp_path: Path) -> None:
    check_space(tmp_path / "not" / "there", 1, "a result", "--out DIR")
    with pytest.raises(UserError, match=r"a result: .* MiB must be free at ") as error:
        check_space(tmp_path, 1 << 60, "a result", "--out DIR")
    assert error.value.hint == "free some space, or name another place with --out DIR"


def test_the_reserve_is_held_without_a_name(tmp_path: Path) -> None:
    """A runner that is killed leaves nothing in the run's folder."""
    held = []
    with reserved(tmp_path):
        assert list(tmp_path.iterdir()) == []
        for link in Path("/proc/self/fd").iterdir():
            try:
                if link.readlink().is_relative_to(tmp_path):
                    held.append(link.stat().st_blocks * 512)
            except OSError:
                continue
    assert len(held) == 1 and held[0] >= REPORT_RESERVE_BYTES


def test_no_room_for_the_reserve(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(file: int, start: int, size: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(UserError, match="No space left"), reserved(tmp_path):
        pytest.fail("there was room")
