# SPDX-License-Identifier: GPL-2.0-or-later
"""What a workload is: a module of this package with a WORKLOAD, which says what is declared here.

The heartbeat, the player and the echo load (if asked for) run beside each of them.
"""

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from shutil import which

from contract.options import Options
from contract.values import Refused
from contract.workload import Description
from errors import Exit, UserError
from monitors.streams import Stream
from workloads.telling import searched


@dataclass(frozen=True)
class Parameter:
    """One of `--load NAME=VALUE`; defaults: profile -> its value as it is written."""

    name: str
    help: str
    read: Callable[[str], int]
    defaults: Mapping[str, str]


def defaults(quick: str, standard: str, full: str) -> dict[str, str]:
    """A parameter's, of each profile."""
    return {"quick": quick, "standard": standard, "full": full}


@dataclass(frozen=True)
class Ground:
    """What a workload runs on: names of disks are the kernel's."""

    scratch: Path
    disk: str  # under the file system
    figures: Path  # where its programs may leave a JSON object of the run's figures
    more_disks: tuple[str, ...] = ()  # beside that, as many as it asked for: empty


@dataclass(frozen=True)
class Needs:
    """What has to fit at once on the file system under test; bytes: their inodes' and names' too.

    files: how many there are at the most, where they are many.
    """

    bytes: int = 0
    files: int = 0


@contextlib.contextmanager
def nothing_to_prepare(options: Options, ground: Ground) -> Iterator[None]:
    """For a workload that begins with an empty file system."""
    yield


@dataclass(frozen=True)
class Workload:
    """streams: of its own, in the order in which they start, of which `finite` end the run.

    prepared: makes what it needs on the ground, and takes away what is not on the file system;
    undo: takes that away after a run that was killed.
    done: why a run is complete. late: of whom the deadline was missed.
    """

    name: str
    describe: Callable[[Options], Description]
    streams: Callable[[Options], list[str]]
    programs: Callable[[Options, Ground], list[Stream]]
    finite: Callable[[Options], set[str]]
    done: str
    late: str
    parameters: tuple[Parameter, ...] = ()
    kills: bool = False  # a program that is no stream is to be killed: that is no failed run
    gitks: bool = False  # of the desktop's, with all of its options: the history is made for them
    memory: int | None = None  # bytes that its VM has unless --memory says; None: the profile's
    more_memory: int = 0  # beside the profile's: what its own programs hold, so that others have it
    fs: str | None = None  # the file system that it is about, if the user names none
    more_disks: int = 0  # of the VM, of the same kind as the one under test
    more_bytes: Callable[[Options], int] = lambda options: 0  # that large files of it come to hold
    needs: Callable[[Options], Needs] = lambda options: Needs()
    packages: Mapping[str, str] = field(default_factory=dict)  # Debian's, and a command of each
    modules: tuple[str, ...] = ()  # of the kernel, loaded where they are not built in
    config: tuple[str, ...] = ()  # the CONFIG_ options that its kernel needs; "A|B": one of them
    slabs: tuple[str, ...] = ()  # caches of /proc/slabinfo that are sampled, where there are such
    check: Callable[[Options], None] = lambda options: None  # UserError (2): they do not fit
    prepared: Callable[[Options, Ground], contextlib.AbstractContextManager[None]] = (
        nothing_to_prepare
    )
    undo: Callable[[], None] = lambda: None

    def memory_of(self, profiles: int) -> int:
        """Bytes that its VM has unless --memory says; profiles: that of the profile."""
        return self.memory or profiles + self.more_memory

    def check_commands(self) -> None:
        """UserError (3) that names what this machine has not of its packages."""
        path = searched()
        lacking = [name for name, command in self.packages.items() if not which(command, path=path)]
        if lacking:
            raise UserError(
                f"--workload {self.name} needs what is not here: "
                + ", ".join(self.packages[name] for name in lacking),
                hint=f"install {' '.join(lacking)}",
            )

    def completed(self, load: str, profile: str) -> str:
        """`--load` with the profile's default for what it leaves out; UserError (2) if unfit."""
        said = dict(_pairs(load))
        known = {one.name: one for one in self.parameters}
        for name in said:
            if name not in known:
                has = ", ".join(known) or "none"
                raise UserError(
                    f"--load: {self.name} has no parameter {name!r}",
                    hint=f"it has {has}",
                    status=Exit.USAGE,
                )
        words = []
        for name, one in known.items():
            text = said.get(name, one.defaults[profile])
            try:
                one.read(text)
            except Refused as error:
                raise UserError(f"--load {name}: {error}", status=Exit.USAGE) from None
            words.append(f"{name}={text}")
        return ",".join(sorted(words))

    def values(self, options: Options) -> dict[str, int]:
        """Each parameter as options.load, which is complete, has it."""
        known = {one.name: one for one in self.parameters}
        return {name: known[name].read(text) for name, text in _pairs(options.load)}


def _pairs(load: str) -> Iterator[tuple[str, str]]:
    for word in load.split(",") if load else ():
        name, _, value = word.partition("=")
        yield name, value
