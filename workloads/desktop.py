# SPDX-License-Identifier: GPL-2.0-or-later
"""The desktop workload of reference/001: music, four gitk's, and an idle program beside them."""

import contextlib
import subprocess
from collections.abc import Iterator
from pathlib import Path

from contract.option_rows import FAKE_GITKS
from contract.options import Options
from contract.run_files import GITK
from contract.workload import DESKTOP, Description
from errors import UserError
from monitors.streams import Stream
from workloads.companions import program
from workloads.workload import Workload, WorkloadEnvironment

CLONE = "linux-2.6"
# Bytes that a gitk keeps: of a made commit its text and the rest, and its program
# (docs/developer/fake-gitk.md).
TEXT, REST, PROGRAM = 897, 245, 6 << 20


def fill(scratch: Path, repository: str) -> None:
    """Clone the history into the file system under test."""
    # A repository may borrow objects from another one, on a disk that is not under test.
    # --dissociate copies these objects, too; it does nothing if there are none.
    command = ["git", "clone", "--quiet", "--no-checkout", "--local", "--no-hardlinks"]
    command += ["--dissociate", "--", str(Path(repository).resolve()), str(scratch / CLONE)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        lines = done.stderr.strip().splitlines() or [f"git ended with status {done.returncode}"]
        raise UserError(f"cannot clone {repository}: {lines[-1]}")


@contextlib.contextmanager
def prepared(options: Options, environment: WorkloadEnvironment) -> Iterator[None]:
    """Clone the history."""
    fill(environment.scratch, str(options.repo))
    yield


def streams(options: Options) -> list[str]:
    """The names of the gitk's."""
    return [f"{GITK}{n}" for n in range(1, options.gitk + 1)]


def programs(options: Options, environment: WorkloadEnvironment) -> list[Stream]:
    """The gitk's; the seed of each is its number."""
    shape = ["--repo", str(environment.scratch / CLONE), "--every", str(options.every)]
    shape += ["--passes", str(options.passes), "--touch", str(options.touch)]
    shape += ["--step", str(options.step), "--commits", str(options.commits)]
    shape += ["--commit-copies", str(options.commit_copies)]
    return [
        program(name, ["fake_gitk", *shape, "--seed", name.removeprefix(GITK)])
        for name in streams(options)
    ]


def kept(options: Options, commit_copies: int) -> int:
    """The memory that the gitk's keep of a made history with so many copies, bytes."""
    commit = commit_copies * TEXT + REST
    return options.gitk * (PROGRAM + options.commits * commit)


def describe(options: Options) -> Description:
    """The desktop's description; it also holds for results that do not name their workload."""
    return Description(
        name=DESKTOP,
        summary="music and gitk's that read a history",
        subject="gitk",
        subjects=tuple(streams(options)),
        primary="stalled",
    )


WORKLOAD = Workload(
    name=DESKTOP,
    describe=describe,
    streams=streams,
    programs=programs,
    finite=lambda options: set(streams(options)),
    done="every gitk read its history",
    late="the gitk's",
    gitks=FAKE_GITKS,
    prepared=prepared,
)
