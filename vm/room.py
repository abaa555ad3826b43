# SPDX-License-Identifier: GPL-2.0-or-later
"""The disk space that a run takes on the host: throw-away disks, and space that must be free."""

import contextlib
import errno
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from errors import UserError
from setup import cache

WORK_DISK_BYTES = 8 << 30
RESULT_BYTES = 64 << 20
# Held while the guest runs, so that a full disk still takes the last results, status and report.
REPORT_RESERVE_BYTES = 8 << 20


@contextlib.contextmanager
def reserved(folder: Path) -> Iterator[None]:
    """Hold REPORT_RESERVE_BYTES of folder's disk; UserError if there is no room for them."""
    with contextlib.ExitStack() as opened:
        try:
            # Without a name, so that nothing is left of it if this process dies.
            file = opened.enter_context(tempfile.TemporaryFile(dir=folder))
            os.posix_fallocate(file.fileno(), 0, REPORT_RESERVE_BYTES)
        except OSError as error:
            raise UserError(f"{folder}: {error.strerror}", hint="free some space") from error
        yield


@contextlib.contextmanager
def work_disk(scratch: Path) -> Iterator[list[int]]:
    """The file descriptors of the disk under test, or of a further one, which is a sparse file."""
    with _nameless(scratch) as (work, fds):
        os.truncate(work, WORK_DISK_BYTES)
        yield fds


@contextlib.contextmanager
def copied_disk(scratch: Path, image: Path) -> Iterator[list[int]]:
    """The file descriptors of a copy of image, equally sparse, to which the guest may write.

    Not an overlay: it grows in a thread of QEMU, at times of the host's clock.
    """
    with _nameless(scratch) as (copy, fds), open(image, "rb") as source:
        with cache.writing():
            os.truncate(copy, os.fstat(source.fileno()).st_size)
            for first, end in _extents(source.fileno()):
                os.lseek(copy, first, os.SEEK_SET)
                while first < end:
                    if not (sent := os.sendfile(copy, source.fileno(), first, end - first)):
                        raise OSError(errno.EIO, "cut short while it was copied", str(image))
                    first += sent
        yield fds


def _extents(file: int) -> Iterator[tuple[int, int]]:
    """The first and end offsets (bytes) of each stretch of data in a sparse file."""
    size, end = os.fstat(file).st_size, 0
    while end < size:
        try:
            first = os.lseek(file, end, os.SEEK_DATA)
        except OSError as error:
            if error.errno == errno.ENXIO:
                return
            raise
        end = os.lseek(file, first, os.SEEK_HOLE)
        yield first, end


@contextlib.contextmanager
def _nameless(scratch: Path) -> Iterator[tuple[int, list[int]]]:
    """A file without a name, so that nothing is left of it if this process dies.

    Yields its descriptor, and two for QEMU: the second is read-only, because QEMU first opens a
    disk for reading only, and takes a descriptor of exactly that mode.
    """
    with contextlib.ExitStack() as opened:
        with cache.writing():
            file = opened.enter_context(tempfile.TemporaryFile(dir=scratch))
            reader = opened.enter_context(open(f"/proc/self/fd/{file.fileno()}", "rb"))
        yield file.fileno(), [file.fileno(), reader.fileno()]


def free_bytes(folder: Path) -> int:
    """The free bytes of the file system on which folder is or will be."""
    nearest = next(place for place in (folder, *folder.parents) if place.exists())
    return shutil.disk_usage(nearest).free


def check_space(folder: Path, needed: int, what: str, elsewhere: str) -> None:
    """UserError unless the file system on which folder is or will be has `needed` bytes free.

    elsewhere: the option or variable that names another place.
    """
    free = free_bytes(folder)
    if free < needed:
        raise UserError(
            f"{what}: {needed >> 20} MiB must be free at {folder}, but only {free >> 20} MiB are",
            hint=f"free some space, or name another place with {elsewhere}",
        )
