# SPDX-License-Identifier: GPL-2.0-or-later
"""One measurement at a time on a machine: two beside each other would measure each other."""

import contextlib
import fcntl
import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from errors import UserError

NAME = "desktop-freeze.lock"


def path() -> Path:
    """The lock file: in /run/lock where all users share it, else in the temporary folder."""
    shared = Path("/run/lock")
    usable = shared.is_dir() and os.access(shared, os.W_OK)
    return (shared if usable else Path(tempfile.gettempdir())) / NAME


@contextlib.contextmanager
def held() -> Iterator[None]:
    """Hold the machine; UserError that names the owner if somebody else does."""
    # fs.protected_regular forbids O_CREAT on another user's file in a sticky folder.
    try:
        fd = os.open(path(), os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        fd = os.open(path(), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        with contextlib.suppress(OSError):
            os.fchmod(fd, 0o666)
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            owner = os.pread(fd, 200, 0).decode(errors="replace").strip() or "an unknown process"
            raise UserError(
                f"another run is measuring on this machine: {owner}",
                hint="two at once would measure each other; wait for it, or end it",
            ) from None
        os.truncate(fd, 0)
        os.pwrite(fd, f"pid {os.getpid()}, since {time.strftime('%H:%M:%S')}\n".encode(), 0)
        yield
        os.truncate(fd, 0)
    finally:
        os.close(fd)
