# SPDX-License-Identifier: GPL-2.0-or-later
"""The workload of reference/004: two dd in a small memory control group, and outside it.

The group's LRU lists fill up with dirty pages and pages under writeback. The question of 2012: does
reclaim wait for the flusher, or does the kernel kill?
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
from workloads.companions import heartbeat, program
from workloads.load_output import begin_of, end_of
from workloads.reclaim import waits
from workloads.workload import Needs, Parameter, Workload, WorkloadEnvironment, defaults

NAME = "memcg-dirty"
INSIDE = "heartbeat-inside"
LOAD = "dirty"  # the stream of the program that starts the dd's and times them
MIB = 1 << 20
LEAST_LIMIT = 24  # MiB: the heartbeat in the group needs about twelve
BEATS = {"inside": INSIDE, "outside": HEARTBEAT}
ANY = "any"
RECLAIM = ("memcg reclaims", "pages freed", "direct reclaims")
WAITS = ("waits", "ms", "kswapd's waits", "kswapd's ms")
LATE = ("late by, worst s", "deadlines missed")
DIRTY_SHARE = 5  # vm.dirty_ratio is 20 %


def streams(options: Options) -> list[str]:
    """The names of the heartbeat in the group and of the load."""
    return [INSIDE, LOAD]


def more_bytes(options: Options) -> int:
    """The bytes of the files of one place; they are removed before the next place's are written."""
    values = WORKLOAD.values(options)
    return values["writers"] * values["size"]


def needs(options: Options) -> Needs:
    """The room for the same files, which are on the file system under test."""
    return Needs(more_bytes(options), WORKLOAD.values(options)["writers"])


def check(options: Options) -> None:
    """UserError (2) if the group's limit is more than the machine allows to be dirty.

    With --device the memory is not known from the options.
    """
    limit = WORKLOAD.values(options)["limit"]
    if options.device is None and limit * DIRTY_SHARE > options.memory:
        raise UserError(
            f"--load: limit={limit // MIB}M is more than a fifth of the machine's "
            f"{options.memory // MIB} MiB, the most that may be dirty in it",
            hint=f"give at most {options.memory // DIRTY_SHARE // MIB}M, or more --memory",
            status=Exit.USAGE,
        )


def version(text: str) -> int:
    """The version number of control groups; 0 for `any`."""
    return 0 if text == ANY else up_to(2)(text)


def of_machine(options: Options) -> int:
    """The requested version number of control groups, or else the one that this machine has."""
    return WORKLOAD.values(options)["version"] or memcg.offered()


@contextlib.contextmanager
def prepared(options: Options, environment: WorkloadEnvironment) -> Iterator[None]:
    """Make the group."""
    values = WORKLOAD.values(options)
    free = shutil.disk_usage(environment.scratch).free
    if values["writers"] * values["size"] > free:
        raise UserError(
            f"{NAME}: {values['writers']} files of {values['size'] // MIB} MiB do not fit",
            hint=f"{free // MIB} MiB are free: give a smaller --load size=",
        )
    with memcg.limited_group(values["limit"], of_machine(options)):
        yield


def programs(options: Options, environment: WorkloadEnvironment) -> list[Stream]:
    """The heartbeat in the group, which is inside from its first page on, and the load."""
    values = WORKLOAD.values(options)
    group = memcg.of_limit(values["limit"], of_machine(options))
    load = ["workloads.memcg_dirty_load", "--group", str(group.folder), "--disk", environment.disk]
    load += ["--folder", str(environment.scratch), "--mib", str(values["size"] // MIB)]
    load += ["--writers", str(values["writers"]), "--figures", str(environment.figures)]
    return [heartbeat(INSIDE, group.joining()), program(LOAD, load + ["--old"] * group.old)]


def describe(options: Options) -> Description:
    """The tables of the mail: time and MB/s of each dd, means of iostat's and the CPU's columns."""
    values = WORKLOAD.values(options)
    limit, mib, writers = values["limit"] // MIB, values["size"] // MIB, values["writers"]
    places = memcg_dirty_load.PLACES
    times = tuple(
        TableRow(f"{place}, dd {n}", (f"time-{place}-{n}", f"rate-{place}-{n}"))
        for place in places
        for n in range(1, writers + 1)
    )

    def by_place(keys: dict[str, str]) -> tuple[TableRow, ...]:
        return tuple(TableRow(place, tuple(f"{key}-{place}" for key in keys)) for place in places)

    reclaim = {place: _reclaim(place) for place in places}
    late = {
        place: (
            Late(f"late-{place}", BEATS[place], "worst"),
            Late(f"missed-{place}", BEATS[place], "missed"),
        )
        for place in places
    }
    # With --device and no requested version, the machine decides.
    left_open = not values["version"] and options.device is not None

    def rows(figures: Mapping[str, tuple[Recorded | Late, ...]]) -> tuple[TableRow, ...]:
        return tuple(TableRow(place, tuple(one.key for one in figures[place])) for place in places)

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
                f"{writers} dd of {mib} MiB (bs=1k)", ("s", "MB/s"), times, ("lower", "higher")
            ),
            FigureTable("The disk meanwhile (means)", tuple(iostat.values()), by_place(iostat)),
            FigureTable(
                "Written to the disk, with a sync at the end",
                ("MiB",),
                tuple(TableRow(place, (f"synced-{place}",)) for place in places),
            ),
            FigureTable("The CPU meanwhile (%)", tuple(cpu.values()), by_place(cpu)),
            FigureTable(
                "The cgroup",
                ("version", "OOM kills", "dirty MiB, most", "writeback MiB, most"),
                (TableRow("inside", ("version", "killed-inside", "dirty-most", "writeback-most")),),
                of_failed=True,  # a run with a kill is a failed run
            ),
            FigureTable("Reclaim and waits", (*RECLAIM, *WAITS), rows(reclaim)),
            FigureTable("Heartbeats, of the whole run", LATE, rows(late)),
        ),
        recorded=tuple(figure for figures in reclaim.values() for figure in figures),
        late=tuple(figure for figures in late.values() for figure in figures),
        settled=f"control groups of version {memcg.offered()}" if left_open else "",
    )


def _reclaim(place: str) -> tuple[Recorded, ...]:
    """The columns of RECLAIM and WAITS while the dd's of that place write."""
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
            f"version of control groups; {ANY}: 2, or 1 if the machine has only that; with 1 only "
            "the machine's own dirty limit holds, as in 2012",
            version,
            defaults(ANY, ANY, ANY),
        ),
        Parameter(
            "limit",
            "memory limit of the control group",
            whole_mib(LEAST_LIMIT),
            defaults("100M", "100M", "100M"),
        ),
        Parameter("size", "size of each file", whole_mib(1), defaults("256M", "1G", "1G")),
        Parameter("writers", "number of dd's", up_to(8), defaults("2", "2", "2")),
    ),
    # The group shall run full of dirty pages before the machine's limit for them, 20 % of its
    # memory, is reached: so that limit must be above the group's memory.
    memory=1 << 30,
    # Without CGROUP_WRITEBACK only the machine's own dirty limit holds, even with version 2.
    config=("CONFIG_MEMCG", "CONFIG_CGROUP_WRITEBACK"),
    more_bytes=more_bytes,
    needs=needs,
    check=check,
    prepared=prepared,
    undo=memcg.undo,
)
