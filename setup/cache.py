# SPDX-License-Identifier: GPL-2.0-or-later
"""Where costly things are kept: keyed by content, built aside, renamed into place."""

import contextlib
import fcntl
import hashlib
import os
import shutil
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
def scratch(kind: str) -> Iterator[Path]:
    """A folder for what only this process needs, within; sweep() removes what killed ones left."""
    with lock(SCRATCH), writing():
        folder = Path(tempfile.mkdtemp(prefix=f"{kind}-", dir=root()))
        held = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        fcntl.flock(held, fcntl.LOCK_EX)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(held)


def sweep(kind: str) -> None:
    """Remove what processes that were killed have left of their scratch folders."""
    with lock(SCRATCH):
        for path in abandoned(kind):
            shutil.rmtree(path, ignore_errors=True)


def abandoned(kind: str) -> list[Path]:
    """The scratch folders of this kind that no process holds now."""
    return [path for path in sorted(root().glob(f"{kind}-*")) if path.is_dir() and _is_free(path)]


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
