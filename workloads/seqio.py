# SPDX-License-Identifier: GPL-2.0-or-later
"""The workload of reference/000 and 003: iozone's sequential writes and reads on a RAID-0.

More and more processes share a fixed total on an ext2 over four disks, in 256 MiB of memory. What
was asked in 2010: how often and how long the page allocator and kswapd wait for congestion, and
how many direct reclaims free pages and get none.
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
from workloads.beside import program
from workloads.reclaim import reclaims, stalls, stalls_table
from workloads.seqio_load import MODES, SET_UP
from workloads.telling import begin_of, end_of
from workloads.workload import Ground, Parameter, Workload, defaults

NAME = "seqio"
LOAD = "io"  # the stream of what starts fio and times it
DISKS = 4
PLACE = "raid"  # its folder on the file system under test
MIB = 1 << 20
MOST = 64  # processes
ROOM = 24 << 30  # of four disks of 8 GiB with their file system
# Each of so many files is whole records of 64 KiB.
WHOLE = MOST * seqio_load.RECORD_KIB << 10
PHASES = ("write", "read")
# iozone's two points: after the file system is made, and when all is done.
GATHERED = {"setup": (begin_of(SET_UP), end_of(SET_UP)), "io": ("", "")}


def total(text: str) -> int:
    """Bytes that MOST processes can share in whole records."""
    found = size(text)
    if found % WHOLE:
        raise Refused(f"not whole {WHOLE // MIB} MiB: {text!r}")
    if found > ROOM:
        raise Refused(f"more than {sized(ROOM)}, which the array holds for sure: {text!r}")
    return found


def counts(least: int, most: int) -> list[int]:
    """How many processes, one after the other."""
    return [1 << n for n in range(least.bit_length() - 1, most.bit_length())]


def check(options: Options) -> None:
    """UserError (2) for parameters that do not go together."""
    said = WORKLOAD.values(options)
    if said["most"] < said["least"]:
        raise UserError(
            f"--load: most={said['most']} processes are fewer than least={said['least']}",
            status=Exit.USAGE,
        )


def more_bytes(options: Options) -> int:
    """What the disks of the array hold at most."""
    return WORKLOAD.values(options)["total"]


@contextlib.contextmanager
def prepared(options: Options, ground: Ground) -> Iterator[None]:
    """The array; its file system is the load's to make."""
    with raid.made(ground.more_disks, ground.scratch / PLACE):
        yield


def loading(ground: Ground, mib: int, least: int, most: int, *more: str) -> Stream:
    """The stream of the load on the array."""
    argv = ["workloads.seqio_load", "--place", str(ground.scratch / PLACE), "--mib", str(mib)]
    argv += ["--least", str(least), "--most", str(most), "--figures", str(ground.figures)]
    return program(LOAD, [*argv, "--disks", *ground.more_disks, *more])


def programs(options: Options, ground: Ground) -> list[Stream]:
    """The load."""
    said = WORKLOAD.values(options)
    return [loading(ground, said["total"] // MIB, said["least"], said["most"])]


def describe(options: Options) -> Description:
    """The mails' tables: throughput, stalls at two moments, and reclaims by process count."""
    said = WORKLOAD.values(options)
    mib, each = said["total"] // MIB, counts(said["least"], said["most"])

    def by_mode(figure: str) -> tuple[TableRow, ...]:
        return tuple(
            TableRow(str(n), tuple(f"{figure}-{mode}-{n}" for mode in MODES)) for n in each
        )

    spans = {
        f"{phase}-{n}": (begin_of(f"{phase}-{n}"), end_of(f"{phase}-{n}"))
        for phase in PHASES
        for n in each
    }
    modes = tuple(MODES)
    return Description(
        name=NAME,
        summary=f"{mib} MiB in {said['least']} to {said['most']} files, written and read on RAID-0",
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
            "of all files together",
            total,
            defaults("192M", "1G", "8G"),
        ),
        Parameter(
            "least",
            "processes at first",
            power_of_two(1, MOST),
            defaults("4", "1", "1"),
        ),
        Parameter(
            "most",
            "processes at last, twice as many each time",
            power_of_two(1, MOST),
            defaults("16", "64", "64"),
        ),
    ),
    # The mail's: nearly nothing of what is written fits.
    memory=256 << 20,
    more_disks=DISKS,
    more_bytes=more_bytes,
    check=check,
    packages={**raid.PACKAGES, "fio": "fio"},
    modules=raid.MODULES,
    config=raid.CONFIG,
    prepared=prepared,
)
