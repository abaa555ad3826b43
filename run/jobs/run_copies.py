# SPDX-License-Identifier: GPL-2.0-or-later
"""A run's folder while the run is in progress, and its rename to the run's number.

A worker writes `N.partial-HOST-JOB` and renames it to `N`. If `N` exists, the run is done: its
first copy counts, and any other copy has to have the same bytes.
"""

import contextlib
import errno
import fcntl
import os
import re
import shutil
import socket
from collections.abc import Iterator
from pathlib import Path

from contract.run_files import CONSOLE_LOG, EVENTS, META, STATUS
from contract.untrusted import json_object
from errors import UserError
from vm.qemu import HOST

# Files that differ by host and time, even for the same run.
OF_THE_HOST = frozenset({META, STATUS, EVENTS, CONSOLE_LOG})


def partial_name(number: int, host: str, job: str) -> str:
    """The name of the folder in which this job does a run on this host."""
    host, job = (re.sub(r"[^A-Za-z0-9_]+", "_", word) for word in (host, job))
    return f"{number}.partial-{host}-{job}"


def this_host() -> str:
    """The name of this machine, without its domain."""
    return socket.gethostname().partition(".")[0] or "host"


@contextlib.contextmanager
def partial(variant: Path, number: int, host: str, job: str) -> Iterator[Path]:
    """Make the folder of a run in progress; it is locked within, so its worker is alive."""
    folder = variant / partial_name(number, host, job)
    try:
        folder.mkdir(parents=True)
    except OSError as error:
        raise UserError(
            f"{folder}: {error.strerror}", hint="give another --job, or a PLAN in another folder"
        ) from None
    held = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        # Not every shared file system can lock a folder.
        with contextlib.suppress(OSError):
            fcntl.flock(held, fcntl.LOCK_EX)
        yield folder
    finally:
        os.close(held)


def settle(made: Path, run: Path) -> list[str] | None:
    """Rename a finished run to its number, unless another copy of it exists.

    Returns None for the first copy, else the files in which it differs from the first. An identical
    copy is removed; a different copy stays, as `N.differs-K`. On the host's clock all copies
    differ, and any further copy is removed.
    """
    try:
        made.rename(run)
    except FileNotFoundError:
        if made.exists() or not run.exists():
            raise
        return None  # NFS lost the answer to the first attempt
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
            raise
    else:
        return None
    differing = differences(made, run) if is_repeatable(run) else []
    if not differing:
        shutil.rmtree(made)
        return []
    taken = [int(copy.name.rpartition("-")[2]) for copy in run.parent.glob(f"{run.name}.differs-*")]
    made.rename(run.with_name(f"{run.name}.differs-{1 + max(taken, default=0)}"))
    return differing


def differences(one: Path, other: Path) -> list[str]:
    """The names of the files in which two copies of a run differ, without OF_THE_HOST."""
    names = sorted({*same_everywhere(one), *same_everywhere(other)})
    return [name for name in names if _bytes(one / name) != _bytes(other / name)]


def is_repeatable(run: Path) -> bool:
    """Whether the guest had its own clock, so that any copy has to have the same bytes."""
    clock = (json_object((run / META).read_bytes()) or {}).get("clock")
    return not isinstance(clock, dict) or clock.get("kind") != HOST


def same_everywhere(run: Path) -> list[str]:
    """The sorted names of a run's files that are the same on every host."""
    names = {
        str(path.relative_to(run))
        for path in run.rglob("*")
        if path.is_file() and not path.name.startswith(".")
    }
    return sorted(names - OF_THE_HOST)


def _bytes(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None


def difference_told(run: Path, differing: list[str]) -> str:
    """The warning about a second copy that differs."""
    shown = ", ".join(differing[:5]) + (", …" if len(differing) > 5 else "")
    return (
        f"WARNING: a second copy of {run} differs from it in {shown}. The first one counts. The "
        f"other one is kept beside it, as {run.name}.differs-K: compare both before you trust "
        "either host"
    )
