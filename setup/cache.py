# SPDX-License-Identifier: GPL-2.0-or-later
"""The cache of things that are costly to make: keyed by content, built aside, renamed into place.

The digest of each entry is stored, too. A process reads an entry once before its use and makes it
again if its bytes have changed: a guest from a damaged image would hang, and its kernel be blamed.
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
SCRATCH = "scratch"  # the lock for making, finding and sweeping scratch folders
DIGESTS = "digests"  # the folder with the digests of all other entries
UNFINISHED = re.compile(
    r"\.(.+)\.[a-z0-9_]{8}"
)  # mkdtemp's name of a folder in which something is being built
NEEDS_ROOM = "the cache needs room and must be writable; XDG_CACHE_HOME names another place"
# The entries that this process has read and found undamaged, and their parts that may change.
_checked: dict[tuple[str, int, int], tuple[Path, Collection[str]]] = {}


def place() -> Path:
    """`${XDG_CACHE_HOME:-~/.cache}/desktop-freeze`, which may not exist yet."""
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
    """Turn an OSError about a file of the cache into a UserError that names the file."""
    try:
        yield
    except OSError as error:
        raise UserError(
            f"{error.filename or place()}: {error.strerror}",
            hint=NEEDS_ROOM,
        ) from error


@contextlib.contextmanager
def _report_if_full(place: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno not in NO_ROOM:
            raise
        raise UserError(f"{error.filename or place}: {error.strerror}", hint=NEEDS_ROOM) from error


def key(*parts: str) -> str:
    """16 hex digits that identify these parts in this order."""
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogateescape")).hexdigest()[:16]


def digest(path: Path) -> str:
    """The SHA-256 of an entry of the cache as it was made."""
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
    """The SHA-256 of a file's bytes or of a folder, as it is now; changing: as in tree_digest."""
    if path.is_dir():
        return tree_digest(path, changing)
    return file_digest(path)


def file_digest(path: Path) -> str:
    """SHA-256 of a file's bytes, in hex digits."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _state(target: Path) -> tuple[str, int, int]:
    status = target.stat()
    return os.path.realpath(target), status.st_ino, status.st_mtime_ns


def _is_whole(target: Path, changing: Collection[str]) -> bool:
    """Whether the entry exists with the bytes with which it was made; an unknown digest is stored.

    Each process reads an entry once.
    """
    try:
        state = _state(target)
        if state in _checked:
            return True
        present = digest_now(target, changing)
    except PermissionError:
        raise
    except OSError:  # it does not exist, or the disk cannot read it
        return False
    known = _digest_file(target)
    if not known.exists():
        _keep_digest(target, present)
    elif known.read_text() != present:
        return False
    _checked[state] = target, changing
    return True


def spoilt() -> list[Path]:
    """The entries that this process found undamaged and that are damaged now: reads all again."""
    used = [entry for entry in _checked.values() if entry[0].is_relative_to(root())]
    _checked.clear()
    damaged = [target for target, changing in used if not _is_whole(target, changing)]
    return [target for target in damaged if target.exists()]


def tree_digest(folder: Path, changing: Collection[str] = ()) -> str:
    """The SHA-256 of a folder's names, links and bytes, and of which files are executable.

    changing: entries of the folder itself that are left out.
    """
    total = hashlib.sha256()
    for place, names, files in os.walk(folder, onerror=_raise):
        if Path(place) == folder:
            names[:] = set(names) - set(changing)
        names.sort()
        for name in sorted(files + [name for name in names if (Path(place) / name).is_symlink()]):
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
    """Hold the cache's lock of this name; a second builder of the same thing waits for the first.

    BlockingIOError if another process holds it and wait is False.
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
    """Return `<cache>/<kind>/<name>`, calling build(temporary path) if it is missing or damaged.

    build() makes a file or a folder at its argument; what it leaves after a failure is removed.
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
            with _report_if_full(aside):
                build(aside / name)
            _keep_digest(target, digest_now(aside / name, changing))
            if damaged:
                target.rename(aside / ".damaged")
            (aside / name).rename(target)
            _checked[_state(target)] = target, changing
        finally:
            shutil.rmtree(aside, ignore_errors=True)
    return target


def _entries(folder: Path) -> list[Path]:
    """Its entries; [] if it is no folder, another user's, or just removed by another process."""
    try:
        return list(folder.iterdir())
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return []


def sweep_unfinished() -> None:
    """Remove the unfinished entries of processes that were killed."""
    for aside in (entry for kind in _entries(root()) for entry in _entries(kind)):
        match = UNFINISHED.fullmatch(aside.name)
        # A linked folder belongs to another cache, which has the locks.
        if match is None or aside.parent.is_symlink() or not aside.is_dir():
            continue
        with contextlib.suppress(BlockingIOError), lock(f"{aside.parent.name}-{match[1]}", False):
            shutil.rmtree(aside, ignore_errors=True)


def _raise(error: OSError) -> None:
    raise error


@contextlib.contextmanager
def scratch(kind: str, place: Path | None = None) -> Iterator[Path]:
    """Provide a folder for this process alone; sweep() removes those of killed processes.

    place: its parent folder, instead of the cache.
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
    """Remove the scratch folders of processes that were killed."""
    with lock(SCRATCH):
        for path in abandoned(kind, place):
            shutil.rmtree(path, ignore_errors=True)


def abandoned(kind: str, place: Path | None = None) -> list[Path]:
    """The scratch folders of this kind that no process holds."""
    folders = sorted((place or root()).glob(f"{kind}-*"))
    return [path for path in folders if path.is_dir() and is_held(path) is False]


def is_held(path: Path, access: int = os.O_RDONLY) -> bool | None:
    """Whether a process has locked it (flock); None if it is gone or belongs to another user.

    access: how it is opened; over NFS a file has to be open for writing to be locked alone.
    """
    try:
        held = os.open(path, access | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(held)
    return False
