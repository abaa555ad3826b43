# SPDX-License-Identifier: GPL-2.0-or-later
"""The workload of reference/000 and 003: iozone's sequential writes and reads on a RAID-0.

A growing number of processes share a fixed total of bytes on an ext2 file system over four disks,
in 256 MiB of memory. The questions of 2010: how often and how long do the page allocator and kswapd
wait for congestion, and how many direct reclaims free pages and still get none?
"""

import contextlib
from collections.abc import Iterator

from contract.options import Options
from contract.run_files import HEARTBEAT
from contract.values import Refused, power_of_two, size, sized
from contract.workload import Description, Figure, FigureTable, TableRow
from errors import Exit, UserError
from monitors.streams import Stream
from workloads import raid, seqio_load
from workloads.companions import program
from workloads.load_output import begin_of, end_of
from workloads.reclaim import reclaims, stalls, stalls_table
from workloads.seqio_load import MODES, SET_UP
from workloads.workload import Parameter, Workload, WorkloadEnvironment, defaults

NAME = "seqio"
LOAD = "io"  # the stream of the program that starts fio and times it
DISKS = 4
PLACE = "raid"  # where it is mounted: a folder of the file system under test
MIB = 1 << 20
MOST = 64  # processes
ROOM = 24 << 30  # bytes that four disks of 8 GiB with their file system hold for sure
# Up to MOST files consist of whole records of 64 KiB each.
WHOLE = MOST * seqio_load.RECORD_KIB << 10
PHASES = ("write", "read")
# iozone's two spans: making the file system, and the whole run.
GATHERED = {"setup": (begin_of(SET_UP), end_of(SET_UP)), "io": ("", "")}


def total(text: str) -> int:
    """Bytes that MOST processes can share in whole records."""
    number = size(text)
    if number % WHOLE:
        raise Refused(f"not a multiple of {WHOLE // MIB} MiB: {text!r}")
    if number > ROOM:
        raise Refused(f"more than {sized(ROOM)}, the most that surely fits: {text!r}")
    return number


def counts(least: int, most: int) -> list[int]:
    """The numbers of processes, in the order in which they are measured."""
    return [1 << n for n in range(least.bit_length() - 1, most.bit_length())]


def check(options: Options) -> None:
    """UserError (2) if the parameters contradict each other."""
    values = WORKLOAD.values(options)
    if values["most"] < values["least"]:
        raise UserError(
            f"--load: most={values['most']} processes are fewer than least={values['least']}",
            status=Exit.USAGE,
        )


def more_bytes(options: Options) -> int:
    """The bytes that the array's disks hold at most."""
    return WORKLOAD.values(options)["total"]


@contextlib.contextmanager
def prepared(options: Options, environment: WorkloadEnvironment) -> Iterator[None]:
    """Make the array; the load makes its file system."""
    with raid.assembled(environment.more_disks, environment.scratch / PLACE):
        yield


def loading(
    environment: WorkloadEnvironment, mib: int, least: int, most: int, *more: str
) -> Stream:
    """The stream of the load on the array."""
    argv = ["workloads.seqio_load", "--place", str(environment.scratch / PLACE), "--mib", str(mib)]
    argv += ["--least", str(least), "--most", str(most), "--figures", str(environment.figures)]
    return program(LOAD, [*argv, "--disks", *environment.more_disks, *more])


def programs(options: Options, environment: WorkloadEnvironment) -> list[Stream]:
    """The load."""
    values = WORKLOAD.values(options)
    return [loading(environment, values["total"] // MIB, values["least"], values["most"])]


def describe(options: Options) -> Description:
    """The mails' tables: throughput, stalls at two moments, and reclaims by process count."""
    values = WORKLOAD.values(options)
    mib, least, most = values["total"] // MIB, values["least"], values["most"]

    steps = counts(least, most)

    def by_mode(figure: str) -> tuple[TableRow, ...]:
        return tuple(
            TableRow(str(n), tuple(f"{figure}-{mode}-{n}" for mode in MODES)) for n in steps
        )

    spans = {
        f"{phase}-{n}": (begin_of(f"{phase}-{n}"), end_of(f"{phase}-{n}"))
        for phase in PHASES
        for n in steps
    }
    modes = tuple(MODES)
    return Description(
        name=NAME,
        summary=f"{mib} MiB in {least} to {most} files, written and read on RAID-0",
        subject=HEARTBEAT,
        subjects=(HEARTBEAT,),
        primary="time",
        figures=(Figure("time", "of all writes, rewrites, reads and rereads", "s", 1, "lower"),),
        tables=(
            FigureTable(f"MB/s of {mib} MiB, by processes", modes, by_mode("rate")),
            stalls_table("After the file system's set-up", "setup"),
            stalls_table("After the IO", "io"),
            FigureTable(
                "Waits and direct reclaims, by what so many processes did",
                ("waits", "slow path", "%", "reclaims", "failed", "but progress"),
                tuple(
                    TableRow(where, tuple(one.key for one in reclaims(where, "", "")))
                    for where in spans
                ),
            ),
            FigureTable("MiB that the disks moved, by processes", modes, by_mode("mib")),
        ),
        recorded=(
            *(one for where, span in GATHERED.items() for one in stalls(where, *span)),
            *(one for where, span in spans.items() for one in reclaims(where, *span)),
        ),
    )


WORKLOAD = Workload(
    name=NAME,
    describe=describe,
    streams=lambda options: [LOAD],
    programs=programs,
    finite=lambda options: {LOAD},
    done="every process wrote and read its file",
    late="the writes and reads",
    parameters=(
        Parameter(
            "total",
            "size of all files together",
            total,
            defaults("192M", "1G", "8G"),
        ),
        Parameter(
            "least",
            "number of processes at first",
            power_of_two(1, MOST),
            defaults("4", "1", "1"),
        ),
        Parameter(
            "most",
            "number of processes at last; it doubles from step to step",
            power_of_two(1, MOST),
            defaults("16", "64", "64"),
        ),
    ),
    # As in the mail: hardly any of the written files fits in memory.
    memory=256 << 20,
    more_disks=DISKS,
    more_bytes=more_bytes,
    check=check,
    packages={**raid.PACKAGES, "fio": "fio"},
    modules=raid.MODULES,
    config=raid.CONFIG,
    prepared=prepared,
)
