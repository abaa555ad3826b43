# SPDX-License-Identifier: GPL-2.0-or-later
"""The workload of reference/002: what showed that small caches were shrunk too eagerly.

A large file copied beside a compile; many empty files; bonnie++'s creates and deletes; readers,
writers and an allocator. All on one file system, xfs unless another one is said.
"""

import contextlib
import shutil
from collections.abc import Callable, Iterator

from contract.options import Options
from contract.values import Refused, count, up_to, whole_mib
from contract.workload import Description
from errors import UserError
from monitors.streams import Stream
from workloads.beside import program
from workloads.shrinking import copying, making, tables
from workloads.shrinking.load import PARTS
from workloads.workload import Ground, Needs, Parameter, Workload, defaults

NAME = "shrinker"
LOAD = "shrinker"  # the stream of what starts the parts and times them
ALL = "all"
MIB = 1 << 20
BLOCK, INODE = 4096, 1024  # bytes of a small file, and of an inode with its name
CACHES = {"xfs": "xfs_inode", "ext2": "ext4_inode_cache", "ext3": "ext4_inode_cache"}
CACHES |= {"ext4": "ext4_inode_cache"}  # which drives all three in Debian's kernels


def one_of(words: tuple[str, ...]) -> Callable[[str], int]:
    """The place of a word among them."""

    def read(text: str) -> int:
        if text not in words:
            raise Refused(f"{text!r} is none of {', '.join(words)}")
        return words.index(text)

    return read


def multiple(of: int) -> Callable[[str], int]:
    """A number of 1 or more that `of` divides."""

    def read(text: str) -> int:
        found = count(text)
        if found % of:
            raise Refused(f"not a multiple of {of}: {text!r}")
        return found

    return read


def parts(options: Options) -> tuple[str, ...]:
    """The parts that are asked for, in their order."""
    asked = (ALL, *PARTS)[WORKLOAD.values(options)["part"]]
    return PARTS if asked == ALL else (asked,)


def streams(options: Options) -> list[str]:
    """The load."""
    return [LOAD]


def needs(options: Options) -> Needs:
    """What all parts have at once: those before leave theirs, and bonnie++'s come beside them."""
    said, asked = WORKLOAD.values(options), set(parts(options))
    sources = said["tree"] + 2 * said["objects"] if {"copy", "mix"} & asked else 0
    made = said["files"] if "fsmark" in asked else 0
    bonnie = said["bonnie"] * making.UNIT if "bonnie" in asked else 0
    files = sources + made + bonnie
    large = 2 * said["copy"] if sources else 0
    return Needs(large + sources * BLOCK + files * INODE, files)


@contextlib.contextmanager
def prepared(options: Options, ground: Ground) -> Iterator[None]:
    """The tree and the large file, where a part needs them."""
    said = WORKLOAD.values(options)
    if {"copy", "mix"} & set(parts(options)):
        free = shutil.disk_usage(ground.scratch).free
        if 2 * said["copy"] > free:
            raise UserError(
                f"{NAME}: a file of {said['copy'] // MIB} MiB and its copy do not fit",
                hint=f"{free // MIB} MiB are free on the file system under test: --load copy=",
            )
        copying.prepare(ground.scratch, said["objects"], said["tree"], said["copy"] // MIB)
    yield


def programs(options: Options, ground: Ground) -> list[Stream]:
    """One program does all parts."""
    said = WORKLOAD.values(options)
    load = ["workloads.shrinking.load", "--folder", str(ground.scratch)]
    load += ["--figures", str(ground.figures), "--cache", CACHES[options.fs]]
    for name in ("objects", "tree", "files", "bonnie", "seconds"):
        load += [f"--{name}", str(said[name])]
    return [program(LOAD, [*load, "--parts", *parts(options)])]


def describe(options: Options) -> Description:
    """The mail's forms of what was measured."""
    said = WORKLOAD.values(options)
    return tables.description(NAME, LOAD, parts(options), said, CACHES[options.fs])


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
            f"{ALL}, or one of {', '.join(PARTS)}",
            one_of((ALL, *PARTS)),
            defaults(ALL, ALL, ALL),
        ),
        Parameter("copy", "size of the large file", whole_mib(1), defaults("64M", "1G", "2G")),
        Parameter("objects", "sources that are compiled", up_to(9999), defaults("6", "60", "120")),
        Parameter("tree", "headers beside them", up_to(99_999), defaults("2000", "20000", "40000")),
        Parameter(
            "files",
            "that fs_mark makes",
            multiple(making.LOOPS * making.THREADS),
            defaults("20000", "200000", "400000"),
        ),
        Parameter("bonnie", "x 1,024 files of bonnie++", up_to(9999), defaults("8", "64", "128")),
        Parameter("seconds", "of the mix", up_to(3600), defaults("6", "60", "120")),
    ),
    packages={"fsmark": "fs_mark", "bonnie++": "bonnie++", "gcc": "gcc"},
    more_bytes=lambda options: needs(options).bytes,
    needs=needs,
    prepared=prepared,
    fs="xfs",
    slabs=("dentry", "inode_cache", *sorted(set(CACHES.values()))),
)
