# SPDX-License-Identifier: GPL-2.0-or-later
"""Allows one measurement at a time on a machine: two in parallel would disturb each other.

Measurements whose guests have their own clocks may run in parallel, but not beside any other.
"""

import contextlib
import errno
import fcntl
import os
import stat
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from errors import UserError
from run.run_folders import writing

NAME = "desktop-freeze.lock"
PREPARING_LOCK = "desktop-freeze-ready.lock"  # held while it is not known yet whether to share
LOCK_HINT = "remove it, or name a folder of your own for locks with DESKTOP_FREEZE_LOCKS"


def folder() -> Path:
    """The folder of the lock files: /run/lock if users can write there, else the temporary folder.

    DESKTOP_FREEZE_LOCKS names another folder; its user must make sure that measurements do not
    overlap.
    """
    if own := os.environ.get("DESKTOP_FREEZE_LOCKS"):
        return Path(own)
    shared = Path("/run/lock")
    usable = shared.is_dir() and os.access(shared, os.W_OK)
    return shared if usable else Path(tempfile.gettempdir())


class MachineLock:
    """A lock on the machine, exclusive until share(); ready: a lock that is held until then."""

    def __init__(self, fd: int, alone: bool, ready: contextlib.ExitStack) -> None:
        self._fd = fd
        self._ready = ready
        self.alone = alone

    def share(self) -> None:
        """Share the machine with others whose guests have their own clocks, like ours."""
        # flock() releases the lock before it takes it: another process may come in between.
        _take(self._fd, fcntl.LOCK_SH)
        self.alone = False
        self._ready.close()

    def keep(self) -> None:
        """Keep the machine for us alone; UserError if it is shared."""
        if not self.alone:
            _take(self._fd, fcntl.LOCK_EX)
            self.alone = True
        self._ready.close()


@contextlib.contextmanager
def held(
    beside_others: bool = False, waits: Callable[[str], None] = lambda why: None
) -> Iterator[MachineLock]:
    """Hold the machine; UserError with the owners' process ids if others hold it.

    beside_others: sharing the machine is acceptable: then it waits, after a call of waits with a
    message, for a process that still prepares and may share it.
    """
    with contextlib.ExitStack() as ready, _opened(NAME) as fd:
        if beside_others:
            before = ready.enter_context(_opened(PREPARING_LOCK))
            try:
                fcntl.flock(before, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                waits(f"waiting for another run's preparation: {_owners(before)}")
                fcntl.flock(before, fcntl.LOCK_EX)
        try:
            _take(fd, fcntl.LOCK_EX)
            alone = True
        except UserError:
            if not beside_others:
                raise
            _take(fd, fcntl.LOCK_SH)
            alone = False
        yield MachineLock(fd, alone, ready)


@contextlib.contextmanager
def _opened(name: str) -> Iterator[int]:
    fd = _open(folder() / name)
    try:
        yield fd
    finally:
        os.close(fd)


def _open(path: Path) -> int:
    """Open the lock file, made if it is absent; UserError if it is anything but a plain file.

    Reading is enough for flock(2), so nobody but its owner needs write permission.
    """
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    fd = None
    try:
        while fd is None:
            try:
                fd = os.open(path, flags)
            except FileNotFoundError:
                fd = _make(path, flags)
    except OSError as error:
        what = "a symbolic link" if error.errno == errno.ELOOP else error.strerror
        raise UserError(f"{path}: {what}", hint=LOCK_HINT) from None
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise UserError(f"{path} is not a plain file", hint=LOCK_HINT)
    return fd


def _make(path: Path, flags: int) -> int | None:
    """Make the lock file; None if another process has made it meanwhile."""
    try:
        fd = os.open(path, flags | os.O_CREAT | os.O_EXCL, 0o644)
    except FileExistsError:
        return None
    # Other users have to be able to lock it, whatever our umask is.
    os.fchmod(fd, 0o644)
    return fd


@contextlib.contextmanager
def campaign(path: Path) -> Iterator[None]:
    """Hold a campaign, whose folder is made; UserError if another command has it open.

    The lock is on the folder itself, as users with different caches may share it. The folder is
    removed afterwards if it is empty.
    """
    while True:
        with writing():
            path.mkdir(parents=True, exist_ok=True)
            fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise UserError(
                    f"another run_test.sh is at work in {path}", hint="wait for it, or end it"
                ) from None
            except OSError:
                pass  # not every shared file system can lock a folder
            if not path.is_dir() or path.stat().st_ino != os.fstat(fd).st_ino:
                continue  # its last holder removed it meanwhile
            try:
                yield
            finally:
                with contextlib.suppress(OSError):
                    path.rmdir()
            return
        finally:
            os.close(fd)


def _take(fd: int, how: int) -> None:
    try:
        fcntl.flock(fd, how | fcntl.LOCK_NB)
    except BlockingIOError:
        raise UserError(
            f"another run is measuring on this machine: {_owners(fd)}",
            hint="two at once would measure each other; wait for it, or end it",
        ) from None


def _owners(fd: int) -> str:
    """The processes that hold the lock on this file (/proc/locks), as text."""
    inode, lines = os.fstat(fd).st_ino, []
    with contextlib.suppress(OSError):
        lines = [line.split() for line in Path("/proc/locks").read_text().splitlines()]
    pids = [
        fields[4] for fields in lines if fields[1] == "FLOCK" and fields[5].endswith(f":{inode}")
    ]
    return ", ".join(f"pid {pid}" for pid in pids) or "an unknown process"
