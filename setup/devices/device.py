# SPDX-License-Identifier: GPL-2.0-or-later
"""A block device or a plain file, opened once: what was looked at is what is written to.

A name may lead elsewhere at any moment: /dev/disk/by-id/… of another disk, a link of the user's.
So a name is resolved once; from then on the open descriptor is used, and the kernel's own node.
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
    """name: the user's. descriptor: pins it; not for reading.

    While a block device is open, no other gets its number.
    """

    def __init__(self, name: str, descriptor: int) -> None:
        self.name = name
        self.found = os.fstat(descriptor)
        self._descriptor = descriptor
        self._claimed: int | None = None

    @property
    def is_block(self) -> bool:
        """Whether it is a block device, not a plain file."""
        return stat.S_ISBLK(self.found.st_mode)

    @property
    def number(self) -> str:
        """A block device's number, as in 8:5."""
        return number_of(self.found)

    @property
    def size(self) -> int:
        """Bytes."""
        return size_of(self.found)

    @property
    def node(self) -> str:
        """The kernel's own name of a block device in /dev."""
        return node_of(self.number)

    @property
    def path(self) -> str:
        """A name without links: the kernel's own of a block device, a file's as of now."""
        return self.node if self.is_block else str(Path(self._through()).readlink())

    def identity(self) -> dict[str, Any]:
        """What tells it from a later one of its name or number; diskseq: since 5.15."""
        facts: dict[str, Any] = {"size": self.size}
        if not self.is_block:
            return facts | {"inode": [self.found.st_dev, self.found.st_ino]}
        facts["number"] = self.number
        folder = sys_folder(self.number)
        for path in (folder / "diskseq", folder.parent / "diskseq"):
            if path.is_file():
                facts["diskseq"] = path.read_text().strip()
                break
        return facts

    @property
    def descriptor(self) -> int:
        """For reading and writing; claim() comes first."""
        assert self._claimed is not None
        return self._claimed

    @property
    def is_claimed(self) -> bool:
        """Whether it is open for writing."""
        return self._claimed is not None

    def claim(self, *, alone: bool = True) -> None:
        """Open it for writing, a block device so that nobody can mount or use it; OSError.

        alone: else only for writing; for who holds it by a mapping, which is a claim.
        """
        if self._claimed is None:
            flags = os.O_RDWR | os.O_CLOEXEC | (os.O_EXCL if self.is_block and alone else 0)
            self._claimed = os.open(self._through(), flags)

    def release(self) -> None:
        """Undo claim(): for who is to have it next."""
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
        """Have the kernel forget partitions of a table that is no more, if it has such."""
        with contextlib.suppress(OSError):
            fcntl.ioctl(self.descriptor, REREAD_PARTITIONS)

    def _through(self) -> str:
        return f"/proc/self/fd/{self._descriptor}"


@contextlib.contextmanager
def opened(name: str) -> Iterator[Device]:
    """The device or plain file of that name, pinned within; UserError if it is none."""
    with contextlib.ExitStack() as stack:
        try:
            # Opening for reading has effects on a tape or a FIFO: not before the kind is known.
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
    """What is said of it."""
    if error.errno in (errno.EACCES, errno.EPERM):
        return UserError(f"{name} cannot be opened: {error.strerror}", hint="are you root?")
    return UserError(f"{name}: {error.strerror}", hint="name a partition, a disk or a file")


def stat_of(name: str) -> os.stat_result | None:
    """What is found at this name; None if it is no block device with a driver and no plain file."""
    try:
        found = Path(name).stat()
    except OSError:
        return None
    driven = stat.S_ISBLK(found.st_mode) and sys_folder(number_of(found)).is_dir()
    return found if driven or stat.S_ISREG(found.st_mode) else None


def size_of(found: os.stat_result) -> int:
    """Bytes of a block device (/sys/…/size counts 512-byte sectors) or plain file."""
    if not stat.S_ISBLK(found.st_mode):
        return found.st_size
    return int((sys_folder(number_of(found)) / "size").read_text()) * 512


def number_of(found: os.stat_result) -> str:
    """A block device's number, as in 8:5."""
    return f"{os.major(found.st_rdev)}:{os.minor(found.st_rdev)}"


def sys_folder(number: str) -> Path:
    """The folder in /sys of the block device of that number."""
    return Path("/sys/dev/block", number).resolve()


def node_of(number: str) -> str:
    """The kernel's own name in /dev of the block device of that number."""
    try:
        facts = (sys_folder(number) / "uevent").read_text().splitlines()
        (name,) = [line[8:] for line in facts if line.startswith("DEVNAME=")]
        found = Path("/dev", name).stat()
    except (OSError, ValueError):
        problem = f"block device {number} has no node in /dev"
        raise UserError(problem, hint="mount devtmpfs there") from None
    if not stat.S_ISBLK(found.st_mode) or number_of(found) != number:
        raise UserError(f"/dev/{name} is not the block device {number}, as the kernel names it")
    return f"/dev/{name}"
