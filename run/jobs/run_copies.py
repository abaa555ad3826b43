# SPDX-License-Identifier: GPL-2.0-or-later
"""A run's folder while it is made, and its one rename to the run's number.

Who does a run writes `N.partial-HOST-JOB`, and renames it to `N`. What is there is done: the first
copy of a run counts, and another one has to be the same bytes.
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

# What says more of where and when a run was done than of the run.
OF_THE_HOST = frozenset({META, STATUS, EVENTS, CONSOLE_LOG})


def partial_name(number: int, host: str, job: str) -> str:
    """What the folder of a run is called that this job makes on this host."""
    host, job = (re.sub(r"[^A-Za-z0-9_]+", "_", one) for one in (host, job))
    return f"{number}.partial-{host}-{job}"


def this_host() -> str:
    """The name of this machine, without its domain."""
    return socket.gethostname().partition(".")[0] or "host"


@contextlib.contextmanager
def partial(variant: Path, number: int, host: str, job: str) -> Iterator[Path]:
    """The folder of a run that is made, new, and locked within: who holds it lives."""
    folder = variant / partial_name(number, host, job)
    try:
        folder.mkdir(parents=True)
    except OSError as error:
        raise UserError(
            f"{folder}: {error.strerror}", hint="give another --job, or a PLAN in another folder"
        ) from None
    held = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        # Not every file system that hosts share can lock a folder.
        with contextlib.suppress(OSError):
            fcntl.flock(held, fcntl.LOCK_EX)
        yield folder
    finally:
        os.close(held)


def settle(made: Path, run: Path) -> list[str] | None:
    """Rename a run that is done to its number, unless another copy of it is there already.

    None if it was the first; else the files in which it differs from that. A copy that is the same
    is removed; one that differs stays, as `N.differs-K`. On the host's clock all differ, and any
    other copy is removed.
    """
    try:
        made.rename(run)
    except FileNotFoundError:
        if made.exists() or not run.exists():
            raise
        return None  # NFS has lost the answer to the first try
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
            raise
    else:
        return None
    differing = differences(made, run) if is_repeatable(run) else []
    if not differing:
        shutil.rmtree(made)
        return []
    taken = [int(one.name.rpartition("-")[2]) for one in run.parent.glob(f"{run.name}.differs-*")]
    made.rename(run.with_name(f"{run.name}.differs-{1 + max(taken, default=0)}"))
    return differing


def differences(one: Path, other: Path) -> list[str]:
    """The names of the files in which two copies of a run differ, those of the host left out."""
    names = sorted({*same_everywhere(one), *same_everywhere(other)})
    return [name for name in names if _bytes(one / name) != _bytes(other / name)]


def is_repeatable(run: Path) -> bool:
    """Whether its guest had a clock of its own, so that another copy has to be the same bytes."""
    clock = (json_object((run / META).read_bytes()) or {}).get("clock")
    return not isinstance(clock, dict) or clock.get("kind") != HOST


def same_everywhere(run: Path) -> list[str]:
    """The names of a run's files that are the same on every host, in order."""
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
    """What is said loudly of a second copy that is not the same run."""
    shown = ", ".join(differing[:5]) + (", …" if len(differing) > 5 else "")
    return (
        f"WARNING: a second copy of {run} differs from it in {shown}. The first one counts. The "
        f"other one is kept beside it, as {run.name}.differs-K: compare both before you trust "
        "either host"
    )
