# SPDX-License-Identifier: GPL-2.0-or-later
"""The workload of reference/002, which showed that small caches were shrunk too eagerly.

Its parts: a large file is copied beside a compile; many empty files are made; bonnie++ creates and
deletes files; readers, writers and an allocator work together. All use one file system, xfs unless
--fs names another.
"""

import contextlib
import shutil
from collections.abc import Callable, Iterator

from contract.options import Options
from contract.values import Refused, count, up_to, whole_mib
from contract.workload import Description
from errors import UserError
from monitors.streams import Stream
from workloads.companions import program
from workloads.shrinking import copying, making, tables
from workloads.shrinking.load import PARTS
from workloads.workload import Needs, Parameter, Workload, WorkloadEnvironment, defaults

NAME = "shrinker"
LOAD = "shrinker"  # the stream of the program that does the parts and times them
ALL = "all"
MIB = 1 << 20
BLOCK, INODE = 4096, 1024  # bytes of a small file, and of an inode with its name
CACHES = {"xfs": "xfs_inode", "ext2": "ext4_inode_cache", "ext3": "ext4_inode_cache"}
CACHES |= {"ext4": "ext4_inode_cache"}  # in Debian's kernels ext4 drives all three


def read_choice(words: tuple[str, ...]) -> Callable[[str], int]:
    """A reader of one of these words; it returns the word's index, from 0."""

    def read(text: str) -> int:
        if text not in words:
            raise Refused(f"{text!r} is not one of {', '.join(words)}")
        return words.index(text)

    return read


def read_multiple(of: int) -> Callable[[str], int]:
    """A reader of an integer of at least 1 that is a multiple of `of`."""

    def read(text: str) -> int:
        number = count(text)
        if number % of:
            raise Refused(f"not a multiple of {of}: {text!r}")
        return number

    return read


def parts(options: Options) -> tuple[str, ...]:
    """The requested parts, in their order."""
    part = (ALL, *PARTS)[WORKLOAD.values(options)["part"]]
    return PARTS if part == ALL else (part,)


def streams(options: Options) -> list[str]:
    """The name of the load's stream."""
    return [LOAD]


def needs(options: Options) -> Needs:
    """The room for the files of all parts together: earlier parts leave theirs behind."""
    values, chosen = WORKLOAD.values(options), set(parts(options))
    sources = values["tree"] + 2 * values["objects"] if {"copy", "mix"} & chosen else 0
    of_fsmark = values["files"] if "fsmark" in chosen else 0
    bonnie = values["bonnie"] * making.UNIT if "bonnie" in chosen else 0
    files = sources + of_fsmark + bonnie
    large = 2 * values["copy"] if sources else 0
    return Needs(large + sources * BLOCK + files * INODE, files)


@contextlib.contextmanager
def prepared(options: Options, environment: WorkloadEnvironment) -> Iterator[None]:
    """Make the tree and the large file, if a part needs them."""
    values = WORKLOAD.values(options)
    if {"copy", "mix"} & set(parts(options)):
        free = shutil.disk_usage(environment.scratch).free
        if 2 * values["copy"] > free:
            raise UserError(
                f"{NAME}: a file of {values['copy'] // MIB} MiB and its copy do not fit",
                hint=f"{free // MIB} MiB are free: give a smaller --load copy=",
            )
        copying.prepare(
            environment.scratch, values["objects"], values["tree"], values["copy"] // MIB
        )
    yield


def programs(options: Options, environment: WorkloadEnvironment) -> list[Stream]:
    """The program that does all parts."""
    values = WORKLOAD.values(options)
    load = ["workloads.shrinking.load", "--folder", str(environment.scratch)]
    load += ["--figures", str(environment.figures), "--cache", CACHES[options.fs]]
    for name in ("objects", "tree", "files", "bonnie", "seconds"):
        load += [f"--{name}", str(values[name])]
    return [program(LOAD, [*load, "--parts", *parts(options)])]


def describe(options: Options) -> Description:
    """The figures and tables in the form of the mail."""
    values = WORKLOAD.values(options)
    return tables.description(NAME, LOAD, parts(options), values, CACHES[options.fs])


WORKLOAD = Workload(
    name=NAME,
    describe=describe,
    streams=streams,
    programs=programs,
    finite=lambda options: {LOAD},
    done="every part was done",
    late="the parts",
    parameters=(
        Parameter(
            "part",
            f"which part: {ALL}, or one of {', '.join(PARTS)}",
            read_choice((ALL, *PARTS)),
            defaults(ALL, ALL, ALL),
        ),
        Parameter("copy", "size of the large file", whole_mib(1), defaults("64M", "1G", "2G")),
        Parameter("objects", "number of compiled sources", up_to(9999), defaults("6", "60", "120")),
        Parameter(
            "tree",
            "number of headers beside them",
            up_to(99_999),
            defaults("2000", "20000", "40000"),
        ),
        Parameter(
            "files",
            "number of files that fs_mark makes",
            read_multiple(making.LOOPS * making.THREADS),
            defaults("20000", "200000", "400000"),
        ),
        Parameter(
            "bonnie", "bonnie++'s files, in units of 1,024", up_to(9999), defaults("8", "64", "128")
        ),
        Parameter(
            "seconds", "duration of the mix in seconds", up_to(3600), defaults("6", "60", "120")
        ),
    ),
    packages={"fsmark": "fs_mark", "bonnie++": "bonnie++", "gcc": "gcc"},
    more_bytes=lambda options: needs(options).bytes,
    needs=needs,
    prepared=prepared,
    fs="xfs",
    slabs=("dentry", "inode_cache", *sorted(set(CACHES.values()))),
)
