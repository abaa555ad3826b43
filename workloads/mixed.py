# SPDX-License-Identifier: GPL-2.0-or-later
"""The desktop while files are written outside it: "it freezes when I copy a file".

The gitk's read on their disk; seqio's load writes on the RAID of the four others, without end. What
both share is the CPU and the memory: the page cache of what is written.
"""

import contextlib
from collections.abc import Iterator

from contract.options import Options
from contract.values import power_of_two, size, sized
from contract.workload import Description, Figure, FigureTable, TableRow
from errors import Exit, UserError
from monitors.streams import Stream
from workloads import desktop, raid, seqio
from workloads.reclaim import stalls, stalls_table
from workloads.workload import Ground, Parameter, Workload, defaults

NAME = "mixed"
MIB = 1 << 20
# fio, the load and the array take 23 MiB on 6.12: the gitk's shall have what they have alone.
MORE_MEMORY = 32 * MIB


@contextlib.contextmanager
def prepared(options: Options, ground: Ground) -> Iterator[None]:
    """The desktop's history, and the array with its file system."""
    with desktop.prepared(options, ground), seqio.prepared(options, ground):
        for argv in raid.file_system(ground.scratch / seqio.PLACE):
            raid.command(*argv)
        yield


def streams(options: Options) -> list[str]:
    """The gitk's, and the load."""
    return [*desktop.streams(options), seqio.LOAD]


def programs(options: Options, ground: Ground) -> list[Stream]:
    """The same."""
    said = WORKLOAD.values(options)
    mib, writers = said["total"] // MIB, said["writers"]
    how = ["--endless", "--rate", str(said["rate"])]
    writing = seqio.loading(ground, mib, writers, writers, *how)
    return [*desktop.programs(options, ground), writing]


def describe(options: Options) -> Description:
    """The desktop's, with what was written meanwhile and what reclaim did."""
    said = WORKLOAD.values(options)
    own = desktop.describe(options)
    rate = Figure("rate-written", "written outside the desktop meanwhile", "MB/s", 1, "higher")
    return Description(
        name=NAME,
        summary=f"{own.summary}, while {sized(said['rate'])} a second are written outside",
        subject=own.subject,
        subjects=own.subjects,
        primary=own.primary,
        figures=(rate,),
        tables=(
            FigureTable(
                "Written outside the desktop meanwhile",
                ("MiB", "MB/s"),
                (TableRow("", ("mib-written", rate.key)),),
            ),
            stalls_table("Stalls of the page allocator and kswapd", "all"),
        ),
        recorded=stalls("all"),
    )


def check(options: Options) -> None:
    """UserError (2) for a rate of which no writer would have a byte a second."""
    said = WORKLOAD.values(options)
    if said["rate"] < said["writers"]:
        raise UserError(
            f"--load: rate={said['rate']} is less than a byte a second for each writer",
            status=Exit.USAGE,
        )


def more_bytes(options: Options) -> int:
    """What is written before it is written again."""
    return WORKLOAD.values(options)["total"]


WORKLOAD = Workload(
    name=NAME,
    describe=describe,
    streams=streams,
    programs=programs,
    finite=lambda options: set(desktop.streams(options)),
    done="every gitk read its history while files were written",
    late="the gitk's",
    gitks=True,
    more_memory=MORE_MEMORY,
    parameters=(
        Parameter(
            "total",
            "of all files, which are written again and again",
            seqio.total,
            defaults("512M", "1G", "8G"),
        ),
        # A copy is as fast as where it comes from: a USB stick, or a network of 100 Mbit/s.
        Parameter(
            "rate",
            "bytes a second of all writers together",
            size,
            defaults("4M", "10M", "10M"),
        ),
        Parameter(
            "writers",
            "processes that write, a file each",
            power_of_two(1, seqio.MOST),
            defaults("1", "1", "1"),
        ),
    ),
    more_disks=seqio.DISKS,
    more_bytes=more_bytes,
    check=check,
    packages=seqio.WORKLOAD.packages,
    modules=raid.MODULES,
    config=raid.CONFIG,
    prepared=prepared,
)
