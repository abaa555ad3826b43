# SPDX-License-Identifier: GPL-2.0-or-later
"""Unpacks a bundle to a folder. The bundle may come from a stranger who means harm.

docs/reference/redaction.md describes what is read.

Only plain files and folders with plain names are unpacked, to a folder that no other user can read
and that is removed when the program ends. Anything else, or more than a bundle can hold, raises a
UserError of one line.
"""

import atexit
import gzip
import os
import shutil
import tarfile
import tempfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from analysis.reading.words import safe_line
from errors import UserError

MOST_FILES = 20_000
MOST_BYTES = 192 << 20  # of all files together; our own bundles have 5 MB and unpack to 40 MB
MOST_PARTS = 8  # names in a path
LONGEST_PART = 255  # bytes; the limit of common file systems
LONGEST_HEADER = 1 << 20  # bytes of an extended header, which tarfile reads as a whole
CHUNK = 1 << 16  # bytes

_unpacked: list[Path] = []  # the folders of bundles


class Damaged(UserError):
    """The archive, or one of its members, is nothing that a bundle holds."""


@dataclass(frozen=True)
class Member:
    """One plain file of an archive.

    `size` in bytes; `data` can be read until the next member is requested.
    """

    name: str
    size: int
    data: IO[bytes]

    def chunks(self) -> Iterator[bytes]:
        """The file's bytes in pieces; raises Damaged if there are fewer than `size`."""
        left = self.size
        while left:
            try:
                part = self.data.read(min(left, CHUNK))
            except _BROKEN as error:
                raise Damaged(_cut(error)) from error
            if not part:
                raise Damaged("is cut short")
            left -= len(part)
            yield part


_BROKEN = (tarfile.TarError, gzip.BadGzipFile, zlib.error, EOFError, OverflowError, ValueError)


class _Bounded:
    """The unpacked stream; it returns no more bytes than allowed (a gzip bomb has no end)."""

    def __init__(self, packed: gzip.GzipFile) -> None:
        self._packed = packed
        self._left = 0

    def allow(self, size: int) -> None:
        self._left = size

    def read(self, size: int) -> bytes:
        if self._left <= 0:
            raise Damaged(f"holds a header of more than {LONGEST_HEADER >> 20} MiB")
        part = self._packed.read(min(size, CHUNK))
        self._left -= len(part)
        return part

    def drain(self) -> None:
        """Read what follows the last member: only then does gzip compare its checksum."""
        self.allow(LONGEST_HEADER)
        while self.read(CHUNK):
            pass


def members(path: Path) -> Iterator[Member]:
    """Each file of the archive in order; raises Damaged for anything that a bundle does not hold.

    The message of Damaged is one line without the archive's name. Raises UserError if the archive
    cannot be opened.
    """
    try:
        raw = path.open("rb")
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}") from error
    with raw, gzip.GzipFile(fileobj=raw, mode="rb") as packed:
        stream = _Bounded(packed)
        stream.allow(LONGEST_HEADER)
        try:
            archive = tarfile.open(fileobj=stream, mode="r|")  # type: ignore[call-overload]  # noqa: SIM115
            seen: set[str] = set()
            total = 0
            while (header := archive.next()) is not None:
                total += _checked(header, seen)
                if total > MOST_BYTES:
                    raise Damaged(f"holds more than {MOST_BYTES >> 20} MiB")
                if header.isdir():
                    stream.allow(LONGEST_HEADER)
                    continue
                data = archive.extractfile(header)
                if data is None:
                    raise Damaged(f"{safe_line(header.name)}: not a plain file")
                stream.allow(header.size + LONGEST_HEADER)
                yield Member(header.name, header.size, data)
                stream.allow(header.size + LONGEST_HEADER)
                archive.members = []  # otherwise it keeps every header
            stream.drain()
        except _BROKEN as error:
            raise Damaged(_cut(error)) from error
        except OSError as error:
            raise Damaged(f"cannot be read: {error.strerror or safe_line(error)}") from error
        if not seen:
            raise Damaged("holds no files")


def _cut(error: Exception) -> str:
    if isinstance(error, EOFError):
        return "is cut short"
    if isinstance(error, gzip.BadGzipFile | zlib.error):
        return f"is no whole gzip file ({safe_line(error, 60)})"
    return f"is no tar archive, or a damaged one ({safe_line(error, 60)})"


def _checked(header: tarfile.TarInfo, seen: set[str]) -> int:
    """The member's size in bytes; raises Damaged if no bundle has such a type or name."""
    name = header.name
    shown = safe_line(name, 100)
    if not (header.type in (tarfile.REGTYPE, tarfile.AREGTYPE) or header.isdir()):
        raise Damaged(f"{shown}: a link, a device or another kind of file that no bundle holds")
    if header.sparse is not None:
        raise Damaged(f"{shown}: a file with holes, which no bundle holds")
    parts = name.split("/")
    if (
        name.startswith("/")
        or len(parts) > MOST_PARTS
        or any(part in ("", ".", "..") or "\0" in part for part in parts)
        or any(len(os.fsencode(part)) > LONGEST_PART for part in parts)
    ):
        raise Damaged(f"{shown}: a path that no bundle holds")
    if name in seen:
        raise Damaged(f"{shown}: is there twice")
    seen.add(name)
    if len(seen) > MOST_FILES:
        raise Damaged(f"holds more than {MOST_FILES:,} files")
    if header.size < 0 or (header.isdir() and header.size):
        raise Damaged(f"{shown}: has no size that a file can have")
    return header.size


def unpacked(path: Path) -> Path:
    """Unpack the bundle to a folder that is removed when the program ends.

    Raises a UserError of one line if the file is no bundle, is cut short, is too large, or would
    write outside the folder.
    """
    folder = Path(tempfile.mkdtemp(prefix="desktop-freeze-bundle-"))
    _unpacked.append(folder)
    try:
        for member in members(path):
            _extract(member, folder)
    except Damaged as error:
        raise UserError(f"{path}: {error}", hint="no bundle that this suite made") from None
    entries = list(folder.iterdir())
    return entries[0] if len(entries) == 1 and entries[0].is_dir() else folder


@atexit.register
def remove_unpacked() -> None:
    """Remove the folders of all bundles that this process unpacked."""
    while _unpacked:
        shutil.rmtree(_unpacked.pop(), ignore_errors=True)


def _extract(member: Member, folder: Path) -> None:
    target = folder / member.name
    shown = safe_line(member.name, 100)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("xb") as out:
            for part in member.chunks():
                out.write(part)
    except (FileExistsError, NotADirectoryError, IsADirectoryError):
        raise Damaged(f"{shown}: is a file and a folder") from None
    except OSError as error:
        raise UserError(f"{folder}: {error.strerror}") from error
