# SPDX-License-Identifier: GPL-2.0-or-later
"""Where costly things are kept: keyed by content, built aside, renamed into place."""

import contextlib
import fcntl
import hashlib
import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from errors import UserError

NAME = "desktop-freeze"
SCRATCH = "scratch"  # the lock of who makes, looks for or sweeps scratch folders


def place() -> Path:
    """`${XDG_CACHE_HOME:-~/.cache}/desktop-freeze`, which may not be there yet."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / NAME


def root() -> Path:
    """place(), made if absent."""
    path = place()
    with writing():
        path.mkdir(parents=True, exist_ok=True)
    return path


@contextlib.contextmanager
def writing() -> Iterator[None]:
    """An OSError within, of a file of the cache, becomes a UserError that names it."""
    try:
        yield
    except OSError as error:
        raise UserError(
            f"{error.filename or place()}: {error.strerror}",
            hint="the cache needs room and must be writable; XDG_CACHE_HOME names another place",
        ) from error


def key(*parts: str) -> str:
    """16 hex digits that stand for the parts, in their order."""
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogateescape")).hexdigest()[:16]


def digest(path: Path) -> str:
    """SHA-256 of a file of the cache, which is read once; what is there never changes."""

    def read(made: Path) -> None:
        with open(path, "rb") as file:
            made.write_text(hashlib.file_digest(file, "sha256").hexdigest())

    return built("digests", f"{path.parent.name}-{path.name}", read).read_text()


def tree_digest(folder: Path) -> str:
    """SHA-256 of a folder's names, links and bytes, and of which files can be executed."""
    total = hashlib.sha256()
    for place, names, files in os.walk(folder):
        names.sort()
        for name in sorted(files + [one for one in names if (Path(place) / one).is_symlink()]):
            path = Path(place) / name
            total.update(f"{path.relative_to(folder)}\0".encode("utf-8", "surrogateescape"))
            if path.is_symlink():
                total.update(b"link" + bytes(path.readlink()))
                continue
            total.update(b"x" if path.stat().st_mode & stat.S_IXUSR else b"-")
            with open(path, "rb") as file:
                total.update(hashlib.file_digest(file, "sha256").digest())
    return total.hexdigest()


@contextlib.contextmanager
def lock(name: str) -> Iterator[None]:
    """Hold the cache's lock called name; a second builder of the same thing waits for the first."""
    locks = root() / "locks"
    with writing():
        locks.mkdir(exist_ok=True)
        handle = open(locks / name, "w")  # noqa: SIM115 (held below)
    with handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def built(kind: str, name: str, build: Callable[[Path], None]) -> Path:
    """Return `<cache>/<kind>/<name>`, calling build(temporary path) if it is not there.

    build() makes a file or a folder at its argument; what it leaves when it fails is removed.
    """
    target = root() / kind / name
    if target.exists():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    with lock(f"{kind}-{name}"):
        if target.exists():
            return target
        aside = Path(tempfile.mkdtemp(prefix=f".{name}.", dir=target.parent))
        try:
            build(aside / name)
            (aside / name).rename(target)
        finally:
            shutil.rmtree(aside, ignore_errors=True)
    return target


@contextlib.contextmanager
def scratch(kind: str, place: Path | None = None) -> Iterator[Path]:
    """A folder for what only this process needs, within; sweep() removes what killed ones left.

    place: the folder that it is in, instead of the cache.
    """
    with lock(SCRATCH), writing():
        folder = Path(tempfile.mkdtemp(prefix=f"{kind}-", dir=place or root()))
        held = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        fcntl.flock(held, fcntl.LOCK_EX)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(held)


def sweep(kind: str, place: Path | None = None) -> None:
    """Remove what processes that were killed have left of their scratch folders."""
    with lock(SCRATCH):
        for path in abandoned(kind, place):
            shutil.rmtree(path, ignore_errors=True)


def abandoned(kind: str, place: Path | None = None) -> list[Path]:
    """The scratch folders of this kind that no process holds now."""
    folders = sorted((place or root()).glob(f"{kind}-*"))
    return [path for path in folders if path.is_dir() and _is_free(path)]


def _is_free(folder: Path) -> bool:
    try:
        held = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return False  # gone meanwhile, or another user's
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(held)
    return True
