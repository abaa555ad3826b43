# SPDX-License-Identifier: GPL-2.0-or-later
"""Reads a folder that may come from a stranger: follows no link, never blocks, limits memory.

A link could copy a private file into a bug report; a pipe or a device might never end.
"""

import errno
import os
import stat
from collections.abc import Iterator
from io import FileIO
from pathlib import Path
from typing import NamedTuple

from errors import UserError

LARGEST = 64 << 20  # bytes: three hours of all counters; a longer file is damaged
LARGEST_LOG = 32 << 20  # bytes of a stream's log: a day of the player's lines
LARGEST_EVIDENCE = 16 << 20  # bytes of a table of evidence: three hours of the trace
LONGEST_LINE = 65536  # bytes


def open_plain(path: Path) -> FileIO | None:
    """The file, opened for reading; None if it does not exist; OSError if it is no plain file."""
    try:
        if not stat.S_ISREG(path.lstat().st_mode):
            raise OSError(errno.EINVAL, "is a link or no file, not read", str(path))
        return FileIO(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC))
    except FileNotFoundError:
        return None


def read_file(path: Path, problems: list[str], limit: int = LARGEST) -> bytes | None:
    """The file's first `limit` bytes; None if it is not there or cannot be read."""
    try:
        file = open_plain(path)
        if file is None:
            return None
        with file:
            size = os.fstat(file.fileno()).st_size
            parts, left = [], min(size, limit)
            while left > 0 and (part := file.read(left)):
                parts.append(part)
                left -= len(part)
    except OSError as error:
        problems.append(f"{path.name}: {error.strerror}")
        return None
    if size > limit:
        problems.append(f"{path.name}: only its first {limit >> 20} MiB are read")
    return parts[0] if len(parts) == 1 else b"".join(parts)


def read_lines(path: Path) -> Iterator[str]:
    """The lines of a log of any size; lines over LONGEST_LINE come in pieces. No log: no lines."""
    try:
        file = open_plain(path)
        if file is None:
            return
        with os.fdopen(os.dup(file.fileno()), "rb") as log, file:
            while line := log.readline(LONGEST_LINE):
                yield line.decode("utf-8", "replace").rstrip("\r\n")
    except OSError:
        return


class Names(NamedTuple):
    """Names in a folder; `strange`: names that are not UTF-8, with bad bytes replaced."""

    folders: list[str]
    files: list[str]
    links: list[str]
    strange: list[str]


def names_in(folder: Path) -> Names:
    """The names of folders, plain files and links in the folder, without hidden names.

    Raises UserError if the folder cannot be read.
    """
    folders, files, links, strange = names = Names([], [], [], [])
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.name.startswith("."):
                    continue
                if readable(entry.name) != entry.name:
                    strange.append(readable(entry.name))
                elif entry.is_symlink():
                    links.append(entry.name)
                elif entry.is_dir(follow_symlinks=False):
                    folders.append(entry.name)
                elif entry.is_file(follow_symlinks=False):
                    files.append(entry.name)
    except OSError as error:
        raise UserError(f"{folder}: {error.strerror}") from error
    return names


def readable(name: str) -> str:
    """A file's name with bytes that are not UTF-8 replaced."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
