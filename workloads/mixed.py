# SPDX-License-Identifier: GPL-2.0-or-later
"""The desktop while files are written outside it: "it freezes when I copy a file".

The gitk's read from their disk; seqio's load writes to a RAID of four other disks, without end. The
two share only the CPU and the memory, which holds the page cache of the written files.
"""

import contextlib
from collections.abc import Iterator

from contract.option_rows import FAKE_GITKS
from contract.options import Options
from contract.values import power_of_two, size, sized
from contract.workload import Description, Figure, FigureTable, TableRow
from errors import Exit, UserError
from monitors.streams import Stream
from workloads import desktop, raid, seqio
from workloads.reclaim import stalls, stalls_table
from workloads.workload import Parameter, Workload, WorkloadEnvironment, defaults

NAME = "mixed"
MIB = 1 << 20
# fio, the load and the array take 23 MiB on 6.12; the gitk's shall have as much as without them.
MORE_MEMORY = 32 * MIB


@contextlib.contextmanager
def prepared(options: Options, environment: WorkloadEnvironment) -> Iterator[None]:
    """Clone the desktop's history, and make the array with its file system."""
    with desktop.prepared(options, environment), seqio.prepared(options, environment):
        for argv in raid.file_system(environment.scratch / seqio.PLACE):
            raid.command(*argv)
        yield


def streams(options: Options) -> list[str]:
    """The names of the gitk's and of the load."""
    return [*desktop.streams(options), seqio.LOAD]


def programs(options: Options, environment: WorkloadEnvironment) -> list[Stream]:
    """The gitk's and the load."""
    values = WORKLOAD.values(options)
    mib, writers = values["total"] // MIB, values["writers"]
    how = ["--endless", "--rate", str(values["rate"])]
    writing = seqio.loading(environment, mib, writers, writers, *how)
    return [*desktop.programs(options, environment), writing]


def describe(options: Options) -> Description:
    """The desktop's description, and tables of what was written meanwhile and what reclaim did."""
    values = WORKLOAD.values(options)
    own = desktop.describe(options)
    rate = Figure("rate-written", "written outside the desktop meanwhile", "MB/s", 1, "higher")
    return Description(
        name=NAME,
        summary=f"{own.summary}, while {sized(values['rate'])} a second are written outside",
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
    """UserError (2) if the rate is less than a byte per second for each writer."""
    values = WORKLOAD.values(options)
    if values["rate"] < values["writers"]:
        raise UserError(
            f"--load: rate={values['rate']} is less than a byte a second for each writer",
            status=Exit.USAGE,
        )


def more_bytes(options: Options) -> int:
    """The bytes of the files, which are then overwritten again and again."""
    return WORKLOAD.values(options)["total"]


WORKLOAD = Workload(
    name=NAME,
    describe=describe,
    streams=streams,
    programs=programs,
    finite=lambda options: set(desktop.streams(options)),
    done="every gitk read its history while files were written",
    late="the gitk's",
    gitks=FAKE_GITKS,
    more_memory=MORE_MEMORY,
    parameters=(
        Parameter(
            "total",
            "size of all files together, which are written again and again",
            seqio.total,
            defaults("512M", "1G", "8G"),
        ),
        # A copy is as fast as where it comes from: a USB stick, or a network of 100 Mbit/s.
        Parameter(
            "rate",
            "bytes per second of all writers together",
            size,
            defaults("4M", "10M", "10M"),
        ),
        Parameter(
            "writers",
            "number of writing processes, each with its own file",
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
