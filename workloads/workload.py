# SPDX-License-Identifier: GPL-2.0-or-later
"""What a workload declares: each is a module of this package with a WORKLOAD of this type.

The heartbeat, the player and the echo load (if requested) run beside each workload.
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
from workloads.load_output import search_path

# What --screen needs: Debian package -> its command, and bytes for the X server and the windows.
SCREEN_PACKAGES = {"gitk": "gitk", "xterm": "xterm", "xvfb": "Xvfb"}
SCREEN_MEMORY = 64 << 20


@dataclass(frozen=True)
class Parameter:
    """A parameter of `--load NAME=VALUE`; defaults: profile -> value as text."""

    name: str
    help: str
    read: Callable[[str], int]
    defaults: Mapping[str, str]


def defaults(quick: str, standard: str, full: str) -> dict[str, str]:
    """A parameter's default for each profile."""
    return {"quick": quick, "standard": standard, "full": full}


@dataclass(frozen=True)
class WorkloadEnvironment:
    """The folders and disks that a workload runs on; disks have the kernel's names."""

    scratch: Path  # a folder of the file system under test
    disk: str  # under the file system
    figures: Path  # where its programs may leave a JSON object of the run's figures
    more_disks: tuple[str, ...] = ()  # further empty disks, as many as the workload declares


@dataclass(frozen=True)
class Needs:
    """The room that a workload needs at once on the file system under test.

    bytes: including inodes and names; files: the largest number of files, if they are many.
    """

    bytes: int = 0
    files: int = 0


@contextlib.contextmanager
def nothing_to_prepare(options: Options, environment: WorkloadEnvironment) -> Iterator[None]:
    """Prepare nothing: the workload begins with an empty file system."""
    yield


@dataclass(frozen=True)
class Workload:
    """streams: its streams in the order of their start; the end of all `finite` ones ends a run.

    prepared: makes what the workload needs and, on leaving, removes what is not on the file system;
    undo: removes the same after a run that was killed.
    done: why a run is complete. late: the programs that missed the deadline.
    """

    name: str
    describe: Callable[[Options], Description]
    streams: Callable[[Options], list[str]]
    programs: Callable[[Options, WorkloadEnvironment], list[Stream]]
    finite: Callable[[Options], set[str]]
    done: str
    late: str
    parameters: tuple[Parameter, ...] = ()
    kills: bool = False  # the kernel's kill of a program without a stream is no failure
    gitks: str = ""  # the kind of the desktop's gitk's that it includes, which read a history
    reads: Callable[[Options], int] = lambda options: options.commits  # by each gitk
    memory: int | None = None  # bytes of its VM without --memory; None: those of the profile
    more_memory: int = 0  # bytes added to the profile's, for what its own programs hold
    fs: str | None = None  # its file system, if the user names none
    more_disks: int = 0  # further disks of the VM, of the same kind as the one under test
    more_bytes: Callable[[Options], int] = lambda options: 0  # bytes of its large files
    needs: Callable[[Options], Needs] = lambda options: Needs()
    packages: Mapping[str, str] = field(default_factory=dict)  # Debian package -> its command
    in_windows: bool = False  # its programs need an X server (x_server.py)
    modules: tuple[str, ...] = ()  # kernel modules, loaded unless they are built in
    config: tuple[str, ...] = ()  # CONFIG_ options that its kernel needs; "A|B": A or B
    slabs: tuple[str, ...] = ()  # caches of /proc/slabinfo to sample, if the kernel has them
    check: Callable[[Options], None] = lambda options: None  # UserError (2) if they are invalid
    prepared: Callable[[Options, WorkloadEnvironment], contextlib.AbstractContextManager[None]] = (
        nothing_to_prepare
    )
    undo: Callable[[], None] = lambda: None

    def memory_of(self, profiles: int, screen: bool = False) -> int:
        """The bytes of its VM's memory without --memory; profiles: those of the profile."""
        of_windows = SCREEN_MEMORY if screen else 0
        return (self.memory or profiles + self.more_memory) + of_windows

    def check_commands(self, screen: bool = False) -> None:
        """UserError (3) with the names of the packages that this machine lacks."""
        check_commands(f"--workload {self.name}", self.packages)
        if screen:
            needed = {k: v for k, v in SCREEN_PACKAGES.items() if self.gitks or k != "gitk"}
            check_commands("--screen", needed)

    def completed(self, load: str, profile: str) -> str:
        """`--load` with the profile's defaults filled in; UserError (2) if a value is invalid."""
        given = dict(_pairs(load))
        known = {parameter.name: parameter for parameter in self.parameters}
        for name in given:
            if name not in known:
                has = ", ".join(known) or "none"
                raise UserError(
                    f"--load: {self.name} has no parameter {name!r}",
                    hint=f"it has {has}",
                    status=Exit.USAGE,
                )
        words = []
        for name, parameter in known.items():
            text = given.get(name, parameter.defaults[profile])
            try:
                parameter.read(text)
            except Refused as error:
                raise UserError(f"--load {name}: {error}", status=Exit.USAGE) from None
            words.append(f"{name}={text}")
        return ",".join(sorted(words))

    def values(self, options: Options) -> dict[str, int]:
        """Each parameter's value (bytes, seconds or a count) from a complete --load."""
        known = {parameter.name: parameter for parameter in self.parameters}
        return {name: known[name].read(text) for name, text in _pairs(options.load)}


def check_commands(option: str, packages: Mapping[str, str]) -> None:
    """UserError (3) with the names of the packages that this machine lacks for an option."""
    path = search_path()
    lacking = [name for name, command in packages.items() if not which(command, path=path)]
    if lacking:
        raise UserError(
            f"{option} needs programs that are missing: "
            + ", ".join(packages[name] for name in lacking),
            hint=f"install {' '.join(lacking)}",
        )


def _pairs(load: str) -> Iterator[tuple[str, str]]:
    for word in load.split(",") if load else ():
        name, _, value = word.partition("=")
        yield name, value
