# SPDX-License-Identifier: GPL-2.0-or-later
"""Where costly things are kept: keyed by content, built aside, renamed into place.

The digest of each is kept, too. A process that uses one reads it once and makes it again if its
bytes are others: a guest from a damaged image would hang, and its kernel be blamed.
"""

import contextlib
import fcntl
import hashlib
import os
import re
import shutil
import stat
import sys
import tempfile
import threading
from collections.abc import Callable, Collection, Iterator
from pathlib import Path

from errors import NO_ROOM, UserError

NAME = "desktop-freeze"
SCRATCH = "scratch"  # the lock of who makes, looks for or sweeps scratch folders
DIGESTS = "digests"  # the folder of what is known of all others
UNFINISHED = re.compile(r"\.(.+)\.[a-z0-9_]{8}")  # of mkdtemp: where something is being built
NEEDS_ROOM = "the cache needs room and must be writable; XDG_CACHE_HOME names another place"
# What this process has read and found to be whole, and what of it may change.
_checked: dict[tuple[str, int, int], tuple[Path, Collection[str]]] = {}


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
            hint=NEEDS_ROOM,
        ) from error


@contextlib.contextmanager
def _told_if_full(place: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno not in NO_ROOM:
            raise
        raise UserError(f"{error.filename or place}: {error.strerror}", hint=NEEDS_ROOM) from error


def key(*parts: str) -> str:
    """16 hex digits that stand for the parts, in their order."""
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogateescape")).hexdigest()[:16]


def digest(path: Path) -> str:
    """SHA-256 of what lies in a folder of the cache, as it was made."""
    known = _digest_file(path)
    if not known.exists():
        _keep_digest(path, digest_now(path))
    return known.read_text()


def _digest_file(target: Path) -> Path:
    return root() / DIGESTS / f"{target.parent.name}-{target.name}"


def _keep_digest(target: Path, text: str) -> None:
    known = _digest_file(target)
    aside = known.with_name(f".{known.name}.{os.getpid()}-{threading.get_ident()}")
    with writing():
        known.parent.mkdir(exist_ok=True)
        aside.write_text(text)
        aside.rename(known)


def digest_now(path: Path, changing: Collection[str] = ()) -> str:
    """SHA-256 of a file's bytes, or of a folder, as it is now; changing: as in tree_digest."""
    if path.is_dir():
        return tree_digest(path, changing)
    return file_digest(path)


def file_digest(path: Path) -> str:
    """SHA-256 of a file's bytes, in hex digits."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _state(target: Path) -> tuple[str, int, int]:
    found = target.stat()
    return os.path.realpath(target), found.st_ino, found.st_mtime_ns


def _is_whole(target: Path, changing: Collection[str]) -> bool:
    """Whether it is there with the bytes that it was made of; of unknown ones the digest is kept.

    Each process reads it once.
    """
    try:
        state = _state(target)
        if state in _checked:
            return True
        present = digest_now(target, changing)
    except PermissionError:
        raise
    except OSError:  # not there, or the disk cannot read it
        return False
    known = _digest_file(target)
    if not known.exists():
        _keep_digest(target, present)
    elif known.read_text() != present:
        return False
    _checked[state] = target, changing
    return True


def spoilt() -> list[Path]:
    """What this process has found to be whole and is damaged by now: all is read again."""
    used = [one for one in _checked.values() if one[0].is_relative_to(root())]
    _checked.clear()
    damaged = [target for target, changing in used if not _is_whole(target, changing)]
    return [target for target in damaged if target.exists()]


def tree_digest(folder: Path, changing: Collection[str] = ()) -> str:
    """SHA-256 of a folder's names, links and bytes, and of which files can be executed.

    changing: entries of the folder itself that are left out.
    """
    total = hashlib.sha256()
    for place, names, files in os.walk(folder, onerror=_raise):
        if Path(place) == folder:
            names[:] = set(names) - set(changing)
        names.sort()
        for name in sorted(files + [one for one in names if (Path(place) / one).is_symlink()]):
            path = Path(place) / name
            total.update(f"{path.relative_to(folder)}\0".encode("utf-8", "surrogateescape"))
            if path.is_symlink():
                total.update(b"link" + bytes(path.readlink()))
                continue
            total.update(b"x" if path.stat().st_mode & stat.S_IXUSR else b"-")
            total.update(bytes.fromhex(file_digest(path)))
    return total.hexdigest()


@contextlib.contextmanager
def lock(name: str, wait: bool = True) -> Iterator[None]:
    """Hold the cache's lock called name; a second builder of the same thing waits for the first.

    BlockingIOError if another holds it and this one shall not wait.
    """
    locks = root() / "locks"
    with writing():
        locks.mkdir(exist_ok=True)
        handle = open(locks / name, "w")  # noqa: SIM115 (held below)
    with handle:
        fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        yield


def built(
    kind: str, name: str, build: Callable[[Path], None], changing: Collection[str] = ()
) -> Path:
    """Return `<cache>/<kind>/<name>`, calling build(temporary path) if it is not there or damaged.

    build() makes a file or a folder at its argument; what it leaves when it fails is removed.
    changing: entries of the folder that may change later.
    """
    target = root() / kind / name
    if _is_whole(target, changing):
        return target
    with writing():
        target.parent.mkdir(parents=True, exist_ok=True)
    with lock(f"{kind}-{name}"):
        if _is_whole(target, changing):
            return target
        damaged = target.exists()
        if damaged:
            print(f"{target}: damaged in the cache; it is made again", file=sys.stderr)
        with writing():
            aside = Path(tempfile.mkdtemp(prefix=f".{name}.", dir=target.parent))
        try:
            with _told_if_full(aside):
                build(aside / name)
            _keep_digest(target, digest_now(aside / name, changing))
            if damaged:
                target.rename(aside / ".damaged")
            (aside / name).rename(target)
            _checked[_state(target)] = target, changing
        finally:
            shutil.rmtree(aside, ignore_errors=True)
    return target


def sweep_unfinished() -> None:
    """Remove what processes that were killed have left of what they were building."""
    for aside in root().glob("*/.*"):
        found = UNFINISHED.fullmatch(aside.name)
        # A linked folder is another cache's, whose locks are there.
        if found is None or aside.parent.is_symlink() or not aside.is_dir():
            continue
        with contextlib.suppress(BlockingIOError), lock(f"{aside.parent.name}-{found[1]}", False):
            shutil.rmtree(aside, ignore_errors=True)


def _raise(error: OSError) -> None:
    raise error


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
    return [path for path in folders if path.is_dir() and is_held(path) is False]


def is_held(path: Path) -> bool | None:
    """Whether a process has locked it (flock); None if it is gone, or another user's."""
    try:
        held = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(held)
    return False
