# SPDX-License-Identifier: GPL-2.0-or-later
"""For each cause, the counters that must move with it, from another source than the cause itself.

A cause is determined by a task's own clocks and stacks. These counters are those of the whole
machine: they know no task.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analysis.figures.counters import KIB_PER_MIB, PAGES_PER_MIB
from analysis.reading.latency_log import Floats
from analysis.stall_causes.machine import RunCounters

Reading = Callable[[RunCounters, float, float], float | None]


@dataclass(frozen=True)
class Counter:
    """A witness: its name in the table, and how much it moved in a span; None: not available."""

    name: str
    moved: Reading


def grown(table: str, *names: str) -> Counter:
    """A witness that is the sum of growing counters, as far as this kernel has them.

    A name that ends in * stands for all columns with that prefix.
    """

    def moved(machine: RunCounters, begin: float, end: float) -> float | None:
        columns = _columns(machine, table, names)
        moves = [machine.moved(column, begin, end, table) for column in columns]
        known = [move for move in moves if move is not None]
        return sum(known) if known else None

    return Counter(" + ".join(f"`{name}`" for name in names), moved)


def level(table: str, name: str) -> Counter:
    """A witness that is the mean of a gauge in the span."""

    def moved(machine: RunCounters, begin: float, end: float) -> float | None:
        return _level(machine, table, name, begin, end)

    return Counter(f"`{name}`", moved)


def _columns(machine: RunCounters, table: str, names: tuple[str, ...]) -> list[str]:
    content = machine.trace if table == "trace" else machine.run.tables.get(table)
    available = content.names if content else ()
    columns = []
    for name in names:
        if name.endswith("*"):
            columns += [column for column in available if column.startswith(name[:-1])]
        else:
            columns.append(name)
    return columns


def _level(machine: RunCounters, table: str, name: str, begin: float, end: float) -> float | None:
    column = machine.run.column(table, name)
    inside = _inside(column[0], begin, end) if column else None
    return None if column is None or inside is None else float(column[1][inside].mean())


def _inside(stamps: Floats, begin: float, end: float) -> NDArray[np.bool_] | None:
    """Which samples are in the span; None if none is."""
    inside = (stamps > begin) & (stamps <= end)
    return inside if inside.any() else None


def _not_full(machine: RunCounters, begin: float, end: float) -> float | None:
    full = machine.moved("io_full_us", begin, end, "psi")
    return None if full is None else max(0.0, end - begin - full / 1e6)


def _read_but_swap(machine: RunCounters, begin: float, end: float) -> float | None:
    """The MiB read from all disks, including the root's, without swap-ins."""
    read = machine.moved("pgpgin", begin, end, "vmstat")
    swapped = machine.moved("pswpin", begin, end, "vmstat")
    if read is None or swapped is None:
        return None
    return max(0.0, read / KIB_PER_MIB - swapped / PAGES_PER_MIB)


def _crypt_without_disk(machine: RunCounters, begin: float, end: float) -> float | None:
    """The share of the span's samples with bios in flight in dm-crypt but none on the disk."""
    crypt = machine.run.column("diskstats", "crypt_in_flight")
    disk = machine.run.column("diskstats", "disk_in_flight")
    if crypt is None or disk is None or not np.array_equal(crypt[0], disk[0]):
        return None
    inside = _inside(crypt[0], begin, end)
    if inside is None:
        return None
    return float(np.mean((crypt[1][inside] > 0) & (disk[1][inside] == 0)))


# The throttles of old and new kernels: columns that a kernel lacks are left out.
WRITEBACK = (
    *("throttled_writeback_us", "throttled_congested_us"),
    *("congestion_wait_us", "wait_iff_congested_us"),
)
NO_PROGRESS = ("throttled_noprogress_us", "throttled_isolated_us", "throttled_nonlru_us")

# A cause without a witness: no recorded counter of the machine moves with it.
OF: dict[str, tuple[Counter, ...]] = {
    "swap_in": (
        grown("vmstat", "pswpin"),
        grown("vmstat", "workingset_refault_anon"),
        grown("diskstats", "swap_read_sectors"),
    ),
    "file_read": (
        Counter("`pgpgin` without `pswpin`", _read_but_swap),
        grown("diskstats", "fs_read_sectors"),
        grown("vmstat", "workingset_refault_file"),
    ),
    "file_write": (grown("diskstats", "fs_write_sectors"), level("vmstat", "nr_writeback")),
    "dm_crypt": (Counter("`crypt_in_flight` without `disk_in_flight`", _crypt_without_disk),),
    "reclaim_scan": (
        grown("vmstat", "pgscan_direct"),
        grown("vmstat", "allocstall_*"),
        grown("trace", "direct_reclaim_us", "memcg_reclaim_us"),
    ),
    "reclaim_swapout": (
        grown("vmstat", "pswpout"),
        grown("diskstats", "swap_write_sectors"),
        grown("trace", "direct_reclaim_us", "memcg_reclaim_us"),
    ),
    "reclaim_writeback": (
        grown("trace", *WRITEBACK),
        level("vmstat", "nr_writeback"),
    ),
    "reclaim_noprogress": (grown("trace", *NO_PROGRESS), grown("vmstat", "pgscan_direct")),
    "reclaim_kswapd": (
        grown("vmstat", "pgscan_direct_throttle"),
        grown("trace", "kswapd_awake_us"),
    ),
    "compaction": (
        grown("vmstat", "compact_stall"),
        grown("vmstat", "compact_migrate_scanned", "compact_free_scanned"),
    ),
    "cpu_starved": (grown("psi", "cpu_some_us"),),
    "cpu_running": (Counter("the time without `io_full_us`", _not_full),),
    "lock": (),
    "stopped": (),
}
