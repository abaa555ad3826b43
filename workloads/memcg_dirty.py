# SPDX-License-Identifier: GPL-2.0-or-later
"""The workload of reference/004: two dd in a small memory control group, and outside it.

The group's LRU lists are full of dirty pages and of pages under writeback. What was asked in 2012:
whether reclaim waits for the flusher, or the kernel kills.
"""

import contextlib
import shutil
from collections.abc import Iterator, Mapping

from contract.options import Options
from contract.run_files import HEARTBEAT
from contract.values import up_to, whole_mib
from contract.workload import Description, Figure, FigureTable, Late, Recorded, TableRow
from errors import Exit, UserError
from monitors.streams import Stream
from workloads import memcg, memcg_dirty_load
from workloads.beside import heartbeat, program
from workloads.reclaim import waits
from workloads.telling import begin_of, end_of
from workloads.workload import Ground, Needs, Parameter, Workload, defaults

NAME = "memcg-dirty"
INSIDE = "heartbeat-inside"
LOAD = "dirty"  # the stream of what starts the dd and times them
MIB = 1 << 20
LEAST_LIMIT = 24  # MiB: the heartbeat in the group needs some twelve
BEATS = {"inside": INSIDE, "outside": HEARTBEAT}
ANY = "any"
RECLAIM = ("memcg reclaims", "pages freed", "direct reclaims")
WAITS = ("waits", "ms", "kswapd's waits", "kswapd's ms")
LATE = ("late by, worst s", "deadlines missed")
DIRTY_SHARE = 5  # vm.dirty_ratio is 20 %


def streams(options: Options) -> list[str]:
    """The heartbeat in the group, and the load."""
    return [INSIDE, LOAD]


def more_bytes(options: Options) -> int:
    """The files of one place, which go before the next one's are written."""
    said = WORKLOAD.values(options)
    return said["writers"] * said["size"]


def needs(options: Options) -> Needs:
    """The same files: they are on the file system under test."""
    return Needs(more_bytes(options), WORKLOAD.values(options)["writers"])


def check(options: Options) -> None:
    """UserError (2) for a group that may hold more than the machine lets be dirty.

    The memory of a device's machine is not known from the options.
    """
    limit = WORKLOAD.values(options)["limit"]
    if options.device is None and limit * DIRTY_SHARE > options.memory:
        raise UserError(
            f"--load: limit={limit // MIB}M is more than a fifth of the machine's "
            f"{options.memory // MIB} MiB, which is all that may be dirty in it",
            hint=f"at most {options.memory // DIRTY_SHARE // MIB}M, or with more memory",
            status=Exit.USAGE,
        )


def version(text: str) -> int:
    """A version of control groups; 0 of `any`."""
    return 0 if text == ANY else up_to(2)(text)


def of_machine(options: Options) -> int:
    """The version that was asked for, or else that this machine has."""
    return WORKLOAD.values(options)["version"] or memcg.offered()


@contextlib.contextmanager
def prepared(options: Options, ground: Ground) -> Iterator[None]:
    """The group."""
    said = WORKLOAD.values(options)
    free = shutil.disk_usage(ground.scratch).free
    if said["writers"] * said["size"] > free:
        raise UserError(
            f"{NAME}: {said['writers']} files of {said['size'] // MIB} MiB do not fit",
            hint=f"{free // MIB} MiB are free on the file system under test: --load size=",
        )
    with memcg.made(said["limit"], of_machine(options)):
        yield


def programs(options: Options, ground: Ground) -> list[Stream]:
    """The heartbeat of the group lives in it from its first page on."""
    said = WORKLOAD.values(options)
    group = memcg.of_limit(said["limit"], of_machine(options))
    load = ["workloads.memcg_dirty_load", "--group", str(group.folder), "--disk", ground.disk]
    load += ["--folder", str(ground.scratch), "--mib", str(said["size"] // MIB)]
    load += ["--writers", str(said["writers"]), "--figures", str(ground.figures)]
    return [heartbeat(INSIDE, group.joining()), program(LOAD, load + ["--old"] * group.old)]


def describe(options: Options) -> Description:
    """The mail's tables: time and MB/s of each, iostat's and the CPU's columns as means."""
    said = WORKLOAD.values(options)
    limit, mib, writers = said["limit"] // MIB, said["size"] // MIB, said["writers"]
    places = memcg_dirty_load.PLACES
    each = tuple(
        TableRow(f"{place}, dd {n}", (f"time-{place}-{n}", f"rate-{place}-{n}"))
        for place in places
        for n in range(1, writers + 1)
    )

    def by_place(keys: dict[str, str]) -> tuple[TableRow, ...]:
        return tuple(TableRow(one, tuple(f"{key}-{one}" for key in keys)) for one in places)

    reclaim = {one: _reclaim(one) for one in places}
    late = {
        one: (Late(f"late-{one}", BEATS[one], "worst"), Late(f"missed-{one}", BEATS[one], "missed"))
        for one in places
    }
    # On a machine of which nothing is said here it is that machine's to decide.
    left_open = not said["version"] and options.device is not None

    def rows(found: Mapping[str, tuple[Recorded | Late, ...]]) -> tuple[TableRow, ...]:
        return tuple(TableRow(one, tuple(each.key for each in found[one])) for one in places)

    iostat, cpu = memcg_dirty_load.IOSTAT, memcg_dirty_load.CPU
    return Description(
        name=NAME,
        summary=f"{writers} dd of {mib} MiB in a memory cgroup of {limit} MiB, then outside it",
        subject="heartbeat",
        subjects=(HEARTBEAT, INSIDE),
        primary="time-inside",
        figures=(
            Figure("time-inside", "until the last dd inside the cgroup is done", "s", 1, "lower"),
            Figure("time-outside", "until the last dd outside is done", "s", 1, "lower"),
            Figure("rate-inside", "MB/s of all dd inside", "MB/s", 1, "higher"),
            Figure("rate-outside", "MB/s of all dd outside", "MB/s", 1, "higher"),
        ),
        tables=(
            FigureTable(
                f"{writers} dd of {mib} MiB (bs=1k)", ("s", "MB/s"), each, ("lower", "higher")
            ),
            FigureTable("The disk meanwhile (means)", tuple(iostat.values()), by_place(iostat)),
            FigureTable(
                "Written to the disk, with a sync at the end",
                ("MiB",),
                tuple(TableRow(one, (f"synced-{one}",)) for one in places),
            ),
            FigureTable("The CPU meanwhile (%)", tuple(cpu.values()), by_place(cpu)),
            FigureTable(
                "The cgroup",
                ("version", "OOM kills", "dirty MiB, most", "writeback MiB, most"),
                (TableRow("inside", ("version", "killed-inside", "dirty-most", "writeback-most")),),
                of_failed=True,  # a run with a kill is one
            ),
            FigureTable("Reclaim and waits", (*RECLAIM, *WAITS), rows(reclaim)),
            FigureTable("Heartbeats, of the whole run", LATE, rows(late)),
        ),
        recorded=tuple(one for each in reclaim.values() for one in each),
        late=tuple(one for each in late.values() for one in each),
        settled=f"control groups of version {memcg.offered()}" if left_open else "",
    )


def _reclaim(place: str) -> tuple[Recorded, ...]:
    """RECLAIM's and WAITS' columns, while the dd of that place write."""
    span = (begin_of(place), end_of(place))
    return (
        Recorded(f"memcg-reclaims-{place}", ("memcg_reclaims",), *span),
        Recorded(f"memcg-pages-{place}", ("memcg_reclaim_pages",), *span),
        Recorded(f"reclaims-{place}", ("direct_reclaims",), *span),
        *waits(place, *span),
    )


WORKLOAD = Workload(
    name=NAME,
    describe=describe,
    streams=streams,
    programs=programs,
    finite=lambda options: {LOAD},
    done="every dd wrote its file",
    late="the dd's",
    parameters=(
        Parameter(
            "version",
            f"of control groups: {ANY}: 2, or 1 where the machine has only that; with 1 only the "
            "machine's own dirty limit holds, as in 2012",
            version,
            defaults(ANY, ANY, ANY),
        ),
        Parameter(
            "limit",
            "of the control group",
            whole_mib(LEAST_LIMIT),
            defaults("100M", "100M", "100M"),
        ),
        Parameter("size", "of each file", whole_mib(1), defaults("256M", "1G", "1G")),
        Parameter("writers", "how many dd", up_to(8), defaults("2", "2", "2")),
    ),
    # The dirty pages of the group alone shall be too many: 20 % of the machine's memory are more
    # than the group has.
    memory=1 << 30,
    # Without the second one only the machine's own dirty limit holds, also with version 2.
    config=("CONFIG_MEMCG", "CONFIG_CGROUP_WRITEBACK"),
    more_bytes=more_bytes,
    needs=needs,
    check=check,
    prepared=prepared,
    undo=memcg.undo,
)
