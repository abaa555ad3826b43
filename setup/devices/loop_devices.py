# SPDX-License-Identifier: GPL-2.0-or-later
"""Loop devices by what they stand on, whatever its names are, and attached to an open file.

include/uapi/linux/loop.h. losetup(8) takes a name, which may lead elsewhere by then.
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
    """What a loop device stands on: a file by st_dev and st_ino, or a block device by st_rdev."""

    block: bool
    place: tuple[int, ...]


def backing_of(found: os.stat_result) -> Backing:
    """A file or block device as what a loop device stands on."""
    if stat.S_ISBLK(found.st_mode):
        return Backing(True, (found.st_rdev,))
    return Backing(False, (found.st_dev, found.st_ino))


def backings() -> dict[str, Backing]:
    """What each loop device (`loop3`) in use stands on."""
    found = {}
    for folder in sorted(Path("/sys/block").glob("loop*/loop")):
        name = folder.parent.name
        with contextlib.suppress(OSError):
            found[name] = _backing(name, folder / "backing_file")
    return found


def on(backing: Backing) -> list[str]:
    """Nodes of the loop devices that stand on this."""
    return [f"/dev/{name}" for name, its in backings().items() if its == backing]


def attach(file: int, announce: Callable[[str], None]) -> str:
    """Node of a new loop device with direct IO on an open file; announced before it is there."""
    with _opened("/dev/loop-control", os.O_RDWR) as control:
        while True:
            node = f"/dev/loop{fcntl.ioctl(control, GET_FREE)}"
            announce(node)
            with _opened(node, os.O_RDWR) as loop:
                try:
                    _configure(loop, file)
                except OSError as error:
                    if error.errno == errno.EBUSY:  # somebody else has taken it meanwhile
                        continue
                    raise UserError(f"{node}: no loop device: {error.strerror}") from None
            return node


def is_direct(node: str) -> bool:
    """Whether its IO goes past the page cache of what it stands on."""
    return Path(f"/sys/block/{Path(node).name}/loop/dio").read_text().strip() == "1"


def detach(node: str) -> None:
    """Free a loop device; nothing if it is free. One in use goes when it is no longer."""
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
    except PermissionError:  # an ordinary user's dry run: by the name, which is all that is shown
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
