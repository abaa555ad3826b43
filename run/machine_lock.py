# SPDX-License-Identifier: GPL-2.0-or-later
"""One measurement at a time on a machine: two beside each other would measure each other.

Those whose guests have clocks of their own may be beside each other, not beside any other.
"""

import contextlib
import fcntl
import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from errors import UserError
from setup import cache

NAME = "desktop-freeze.lock"
READYING = "making ready"  # of an owner that may share the machine soon
POLL_S = 0.2


def path() -> Path:
    """The lock file: in /run/lock where all users share it, else in the temporary folder."""
    shared = Path("/run/lock")
    usable = shared.is_dir() and os.access(shared, os.W_OK)
    return (shared if usable else Path(tempfile.gettempdir())) / NAME


class Held:
    """The machine, held alone until share() is called."""

    def __init__(self, fd: int, alone: bool) -> None:
        self._fd = fd
        self.alone = alone

    def share(self) -> None:
        """Let others in whose guests have clocks of their own: ours have."""
        _sign(self._fd)
        fcntl.flock(self._fd, fcntl.LOCK_SH)
        self.alone = False

    def keep(self) -> None:
        """UserError unless the machine is ours alone."""
        if not self.alone:
            _take(self._fd, fcntl.LOCK_EX)
            self.alone = True
        _sign(self._fd)


@contextlib.contextmanager
def held(beside_others: bool = False) -> Iterator[Held]:
    """Hold the machine; UserError that names the owner if somebody else does.

    beside_others: it will do to be one of several that share() it; who is still making ready, and
    may share it, is waited for.
    """
    # fs.protected_regular forbids O_CREAT on another user's file in a sticky folder.
    try:
        fd = os.open(path(), os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        fd = os.open(path(), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        with contextlib.suppress(OSError):
            os.fchmod(fd, 0o666)
    try:
        machine = _enter(fd, beside_others)
        _sign(fd, f", {READYING}" if beside_others else "")
        yield machine
    finally:
        os.close(fd)


@contextlib.contextmanager
def campaign(folder: Path) -> Iterator[None]:
    """Hold a campaign, which may not be there yet; UserError if another command has it open."""
    locks = cache.root() / "locks"
    with cache.writing():
        locks.mkdir(exist_ok=True)
        name = f"campaign-{cache.key(str(folder.resolve()))}"
        fd = os.open(locks / name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UserError(
                f"another run_test.sh is at work in {folder}", hint="wait for it, or end it"
            ) from None
        yield
    finally:
        os.close(fd)


def _enter(fd: int, beside_others: bool) -> Held:
    while True:
        try:
            _take(fd, fcntl.LOCK_EX)
            return Held(fd, alone=True)
        except UserError:
            if not beside_others:
                raise
        try:
            _take(fd, fcntl.LOCK_SH)
            return Held(fd, alone=False)
        except UserError:
            if not _owner(fd).endswith(READYING):
                raise
        time.sleep(POLL_S)


def _sign(fd: int, what: str = "") -> None:
    os.truncate(fd, 0)
    os.pwrite(fd, f"pid {os.getpid()}, since {time.strftime('%H:%M:%S')}{what}\n".encode(), 0)


def _owner(fd: int) -> str:
    return os.pread(fd, 200, 0).decode(errors="replace").strip() or "an unknown process"


def _take(fd: int, how: int) -> None:
    try:
        fcntl.flock(fd, how | fcntl.LOCK_NB)
    except BlockingIOError:
        owner = _owner(fd)
        raise UserError(
            f"another run is measuring on this machine: {owner}",
            hint="two at once would measure each other; wait for it, or end it",
        ) from None
