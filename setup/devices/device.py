# SPDX-License-Identifier: GPL-2.0-or-later
"""A block device or a plain file that is opened once, so that the checked one is the written one.

A path may lead elsewhere at any moment: a link in /dev/disk/by-id, or one of the user's. So a path
is resolved once; from then on the open descriptor and the kernel's own node are used.
"""

import contextlib
import errno
import fcntl
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from errors import Exit, UserError

MIB = 1 << 20
REREAD_PARTITIONS = 0x125F  # BLKRRPART


class Device:
    """A device or file. name: as the user spelled it; descriptor: pins it, and is not for reading.

    While a block device is open, no other device gets its number.
    """

    def __init__(self, name: str, descriptor: int) -> None:
        self.name = name
        self.stat = os.fstat(descriptor)
        self._descriptor = descriptor
        self._claimed: int | None = None

    @property
    def is_block(self) -> bool:
        """Whether it is a block device, not a plain file."""
        return stat.S_ISBLK(self.stat.st_mode)

    @property
    def number(self) -> str:
        """A block device's number, such as 8:5."""
        return number_of(self.stat)

    @property
    def size(self) -> int:
        """Its size in bytes."""
        return size_of(self.stat)

    @property
    def node(self) -> str:
        """The kernel's own name of a block device in /dev."""
        return node_of(self.number)

    @property
    def path(self) -> str:
        """Its path without links: a block device's kernel node, or a file's current path."""
        return self.node if self.is_block else str(Path(self._through()).readlink())

    def identity(self) -> dict[str, Any]:
        """Facts that distinguish it from a later device of its name or number.

        diskseq: since 5.15.
        """
        facts: dict[str, Any] = {"size": self.size}
        if not self.is_block:
            return facts | {"inode": [self.stat.st_dev, self.stat.st_ino]}
        facts["number"] = self.number
        folder = sys_folder(self.number)
        for path in (folder / "diskseq", folder.parent / "diskseq"):
            if path.is_file():
                facts["diskseq"] = path.read_text().strip()
                break
        return facts

    @property
    def descriptor(self) -> int:
        """The file descriptor for reading and writing, after claim()."""
        assert self._claimed is not None
        return self._claimed

    @property
    def is_claimed(self) -> bool:
        """Whether it is open for writing."""
        return self._claimed is not None

    def claim(self, *, alone: bool = True) -> None:
        """Open it for writing; a block device so that nobody else can mount or use it. OSError.

        alone=False: open it without excluding others, because a mapping of ours holds it.
        """
        if self._claimed is None:
            flags = os.O_RDWR | os.O_CLOEXEC | (os.O_EXCL if self.is_block and alone else 0)
            self._claimed = os.open(self._through(), flags)

    def release(self) -> None:
        """Undo claim(), so that another program can claim it."""
        if self._claimed is not None:
            os.close(self._claimed)
            self._claimed = None

    def zero_ends(self) -> None:
        """Overwrite the first and the last MiB with zeroes, and sync."""
        length = min(MIB, self.size)
        for offset in (0, self.size - length):
            data = memoryview(bytes(length))
            while data:
                written = os.pwrite(self.descriptor, data, offset)
                data, offset = data[written:], offset + written
        os.fsync(self.descriptor)

    def reread_partitions(self) -> None:
        """Make the kernel forget the partitions of an erased table."""
        with contextlib.suppress(OSError):
            fcntl.ioctl(self.descriptor, REREAD_PARTITIONS)

    def _through(self) -> str:
        return f"/proc/self/fd/{self._descriptor}"


@contextlib.contextmanager
def opened(name: str) -> Iterator[Device]:
    """Pin the device or plain file of that name; UserError if it is neither."""
    with contextlib.ExitStack() as stack:
        try:
            # O_PATH until the kind is known: opening a tape or a FIFO for reading has side effects.
            descriptor = os.open(name, os.O_PATH | os.O_CLOEXEC)
            stack.callback(os.close, descriptor)
            mode = os.fstat(descriptor).st_mode
            if not stat.S_ISBLK(mode) and not stat.S_ISREG(mode):
                raise UserError(
                    f"{name} is neither a block device nor a plain file", status=Exit.USAGE
                )
            if stat.S_ISBLK(mode):
                through = f"/proc/self/fd/{descriptor}"
                descriptor = os.open(through, os.O_RDONLY | os.O_CLOEXEC)
                stack.callback(os.close, descriptor)
        except OSError as error:
            raise cannot_open(name, error) from None
        device = Device(name, descriptor)
        stack.callback(device.release)
        yield device


def cannot_open(name: str, error: OSError) -> UserError:
    """The error for a device that cannot be opened."""
    if error.errno in (errno.EACCES, errno.EPERM):
        return UserError(f"{name} cannot be opened: {error.strerror}", hint="are you root?")
    return UserError(f"{name}: {error.strerror}", hint="name a partition, a disk or a file")


def stat_of(name: str) -> os.stat_result | None:
    """The status of a block device with a driver, or of a plain file; None for all else."""
    try:
        status = Path(name).stat()
    except OSError:
        return None
    driven = stat.S_ISBLK(status.st_mode) and sys_folder(number_of(status)).is_dir()
    return status if driven or stat.S_ISREG(status.st_mode) else None


def size_of(status: os.stat_result) -> int:
    """The bytes of a block device (/sys/…/size counts 512-byte sectors) or plain file."""
    if not stat.S_ISBLK(status.st_mode):
        return status.st_size
    return int((sys_folder(number_of(status)) / "size").read_text()) * 512


def number_of(status: os.stat_result) -> str:
    """A block device's number, such as 8:5."""
    return f"{os.major(status.st_rdev)}:{os.minor(status.st_rdev)}"


def sys_folder(number: str) -> Path:
    """The folder in /sys of the block device of that number."""
    return Path("/sys/dev/block", number).resolve()


def node_of(number: str) -> str:
    """The kernel's own path in /dev of the block device of that number."""
    try:
        facts = (sys_folder(number) / "uevent").read_text().splitlines()
        (name,) = [line[8:] for line in facts if line.startswith("DEVNAME=")]
        status = Path("/dev", name).stat()
    except (OSError, ValueError):
        problem = f"the block device {number} has no node in /dev"
        raise UserError(problem, hint="mount devtmpfs there") from None
    if not stat.S_ISBLK(status.st_mode) or number_of(status) != number:
        raise UserError(
            f"/dev/{name} is not the block device {number}, although the kernel says so"
        )
    return f"/dev/{name}"
