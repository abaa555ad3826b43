# SPDX-License-Identifier: GPL-2.0-or-later
"""Finds loop devices by the identity of their backing file, and attaches them to open files.

See include/uapi/linux/loop.h. losetup(8) takes a path, which may lead elsewhere by then.
"""

import contextlib
import errno
import fcntl
import os
import stat
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from errors import UserError

SET_DIRECT, CONFIGURE, CLEAR = 0x4C08, 0x4C0A, 0x4C01
GET_STATUS, GET_FREE = 0x4C05, 0x4C82
DIRECT_IO = 16  # LO_FLAGS_DIRECT_IO
# struct loop_info64: device, inode, rdevice, offset, sizelimit, number, …
INFO = struct.Struct("=5Q4I64s64s32s2Q")
# struct loop_config (5.8): descriptor, block size, a loop_info64, eight reserved words.
CONFIG = struct.Struct(f"=2I{INFO.size}s64x")


class Backing(NamedTuple):
    """What backs a loop device: a file by st_dev and st_ino, or a block device by st_rdev."""

    block: bool
    place: tuple[int, ...]


def backing_of(status: os.stat_result) -> Backing:
    """The identity of a file or block device that may back a loop device."""
    if stat.S_ISBLK(status.st_mode):
        return Backing(True, (status.st_rdev,))
    return Backing(False, (status.st_dev, status.st_ino))


def backings() -> dict[str, Backing]:
    """The backing of each loop device in use, by its name (`loop3`)."""
    by_name = {}
    for folder in sorted(Path("/sys/block").glob("loop*/loop")):
        name = folder.parent.name
        with contextlib.suppress(OSError):
            by_name[name] = _backing(name, folder / "backing_file")
    return by_name


def on(backing: Backing) -> list[str]:
    """The nodes of the loop devices with this backing."""
    return [f"/dev/{name}" for name, its in backings().items() if its == backing]


def attach(file: int, announce: Callable[[str], None]) -> str:
    """Attach a new loop device with direct IO to an open file; its node is announced beforehand."""
    with _opened("/dev/loop-control", os.O_RDWR) as control:
        while True:
            node = f"/dev/loop{fcntl.ioctl(control, GET_FREE)}"
            announce(node)
            with _opened(node, os.O_RDWR) as loop:
                try:
                    _configure(loop, file)
                except OSError as error:
                    if error.errno == errno.EBUSY:  # another program has taken it meanwhile
                        continue
                    raise UserError(f"{node} cannot be attached: {error.strerror}") from None
            return node


def is_direct(node: str) -> bool:
    """Whether its IO bypasses the page cache of its backing file."""
    return Path(f"/sys/block/{Path(node).name}/loop/dio").read_text().strip() == "1"


def detach(node: str) -> None:
    """Free a loop device, unless it is free already; one in use is freed when its use ends."""
    with _opened(node, os.O_RDONLY) as loop:
        try:
            fcntl.ioctl(loop, CLEAR)
        except OSError as error:
            if error.errno != errno.ENXIO:
                raise UserError(f"{node} cannot be detached: {error.strerror}") from None


def _configure(loop: int, file: int) -> None:
    info = INFO.pack(*([0] * 8), DIRECT_IO, b"", b"", b"", 0, 0)
    fcntl.ioctl(loop, CONFIGURE, CONFIG.pack(file, 0, info))


def _backing(name: str, file: Path) -> Backing:
    text = file.read_text().rstrip("\n")
    shown = Path(text).stat() if Path(text).exists() else None
    try:
        loop = os.open(f"/dev/{name}", os.O_RDONLY | os.O_CLOEXEC)
    except PermissionError:  # an ordinary user's dry run: only the path is known
        if shown is None:
            raise
        return backing_of(shown)
    try:
        info = bytearray(INFO.size)
        fcntl.ioctl(loop, GET_STATUS, info)
    finally:
        os.close(loop)
    device, inode, rdevice = INFO.unpack(info)[:3]
    if shown is not None and stat.S_ISBLK(shown.st_mode) and shown.st_rdev == rdevice:
        return Backing(True, (rdevice,))
    return Backing(False, (device, inode))


@contextlib.contextmanager
def _opened(node: str, how: int) -> Iterator[int]:
    try:
        descriptor = os.open(node, how | os.O_CLOEXEC)
    except OSError as error:
        raise UserError(f"{node}: {error.strerror}", hint="modprobe loop, as root") from None
    try:
        yield descriptor
    finally:
        os.close(descriptor)
