# SPDX-License-Identifier: GPL-2.0-or-later
"""Reads what disk, dm-crypt, swap and kswapd did in a span: numbers, and clauses for a card."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from analysis.figures.counters import KIB_PER_MIB, PAGES_PER_MIB
from analysis.reading.counter_tables import Table
from analysis.reading.facts import swap_kind
from analysis.reading.latency_log import Floats
from analysis.reading.load import Run
from contract.run_files import STAMP, more_disks
from contract.swap import ZRAM

SECTORS_PER_MIB = 2048.0
# mm_vmscan_throttled's reasons (since 5.16, 8cd7c588decf). `congested` counts as writeback: all
# dirty pages that reclaim met are already under writeback.
WRITEBACK_THROTTLES = ("writeback", "congested")
THROTTLED = re.compile(r"(?:kswapd_)?throttled_(\w+)_n")
OLD_THROTTLES = ("congestion_wait", "wait_iff_congested")
REACH = 2.0  # sample distances by which a span may exceed the samples


@dataclass(frozen=True)
class RunCounters:
    """The run's counters, read for a span from begin to end (elapsed s)."""

    run: Run
    _known: dict[tuple[str, str], tuple[Floats, Floats] | None] = field(default_factory=dict)

    @property
    def trace(self) -> Table | None:
        """Cumulative counts and times (µs) of the kernel's trace events."""
        return self.run.evidence.trace

    def moved(self, name: str, begin: float, end: float, table: str = "trace") -> float | None:
        """By how much a counter grew in the span, in its own unit; None: not available there."""
        column = self._column(table, name)
        if column is None or len(column[0]) < 2:
            return None
        stamps, values = column
        reach = REACH * _distance(stamps)
        if begin < stamps[0] - reach or end > stamps[-1] + reach:
            return None
        known = np.interp((begin, end), stamps, values)
        return max(0.0, float(known[1] - known[0]))

    def _column(self, table: str, name: str) -> tuple[Floats, Floats] | None:
        if (table, name) not in self._known:
            self._known[table, name] = self._read(table, name)
        return self._known[table, name]

    def _read(self, table: str, name: str) -> tuple[Floats, Floats] | None:
        if table != "trace":
            return self.run.column(table, name)
        values = self.trace.get(name) if self.trace else None
        if values is None or self.trace is None:
            return None
        good = np.isfinite(values)
        return self.trace.columns[STAMP][good], values[good]

    @property
    def trace_span(self) -> tuple[float, float, float] | None:
        """Begin and end of the trace (elapsed s), and seconds by which a span may exceed them."""
        if self.trace is None:
            return None
        stamps = self.trace.columns[STAMP]
        return float(stamps[0]), float(stamps[-1]), REACH * _distance(stamps)

    @property
    def on_zram(self) -> bool:
        """Whether a swap-in is a decompression (zram), not a read from a disk."""
        return swap_kind(self.run) == ZRAM

    @property
    def own_disks(self) -> list[str]:
        """The prefixes in diskstats.tsv of the disks that only the workload uses."""
        table = self.run.tables.get("diskstats")
        names = table.names if table else ()
        return [disk for disk in more_disks(len(names)) if f"{disk}_read_sectors" in names]

    @cached_property
    def disk_counted(self) -> bool:
        """Whether the disk's requests could be counted: some devices have no request queues.

        True if there is no trace.
        """
        requests = self._in_run("disk_reads", "disk_writes")
        traffic = self._in_run("crypt_reads", "crypt_writes", "crypt_busy_us")
        return requests is None or requests > 0 or not traffic

    @cached_property
    def crypt_apart(self) -> bool:
        """Whether the trace measures dm-crypt apart from the disk under it.

        `io_ms` of both in /proc/diskstats is not exact enough: the kernel samples it in jiffies at
        the ends of requests (since 5.0, 5b18b5a73760), and shows 69 s although requests were in
        flight for 21 s.
        """
        both = [self._in_run(name) for name in ("crypt_alone_us", "crypt_busy_us")]
        return self.disk_counted and None not in both

    def _in_run(self, *names: str) -> float | None:
        """By how much these counters of the trace grew together; None if none is available."""
        columns = [column[1] for name in names if (column := self._column("trace", name))]
        known = [float(values[-1] - values[0]) for values in columns if len(values) > 1]
        return sum(known) if known else None

    def crypt_busy(self) -> tuple[float | None, float | None]:
        """Seconds in which dm-crypt had work, by trace and by /proc/diskstats; None: not known."""
        counted = self.run.column("diskstats", "crypt_io_ms")
        if self.trace_span is None or counted is None or len(counted[0]) < 2:
            return None, None
        begin = max(self.trace_span[0], float(counted[0][0]))
        end = min(self.trace_span[1], float(counted[0][-1]))
        if end <= begin:
            return None, None
        microseconds = self.moved("crypt_busy_us", begin, end)
        milliseconds = self.moved("crypt_io_ms", begin, end, "diskstats")
        return (
            None if microseconds is None else microseconds / 1e6,
            None if milliseconds is None else milliseconds / 1e3,
        )

    def crypt_alone(self, begin: float, end: float, waited: float) -> float:
        """Seconds, of `waited` for the disk, in which dm-crypt had work and the disk had none.

        The wait has the same share of such time as dm-crypt's busy time, but at most all of it: a
        task that waits while dm-crypt is idle waits for something else. 0 if not known.
        """
        alone = self.moved("crypt_alone_us", begin, end)
        busy = self.moved("crypt_busy_us", begin, end)
        if not self.crypt_apart or not busy or alone is None:
            return 0.0
        return min(waited * min(1.0, alone / busy), alone / 1e6)

    def swap_share(self, begin: float, end: float) -> float | None:
        """Share (0 to 1) of swap-ins in all data read from disks; 0 with zram, None: not known."""
        if self.on_zram:
            return 0.0
        swapped = self.moved("pswpin", begin, end, "vmstat")
        read = self.moved("pgpgin", begin, end, "vmstat")
        if swapped is None or not read:
            return None
        return min(1.0, swapped / PAGES_PER_MIB / (read / KIB_PER_MIB))

    def throttles(self, begin: float, end: float) -> dict[str, tuple[int, float]]:
        """Reason -> (count, seconds) of throttled tasks, without kswapd."""
        by_reason = {}
        for name, reason in throttles_of(self.trace.names if self.trace else ()):
            number = self.moved(f"{name}_n", begin, end)
            spent = self.moved(f"{name}_us", begin, end)
            if number is not None and spent is not None:
                by_reason[reason] = (round(number), spent / 1e6)
        return by_reason

    def on_writeback(self, begin: float, end: float) -> float | None:
        """Share (0 to 1) of the throttled time with writeback as reason; None if not known."""
        by_reason = self.throttles(begin, end)
        whole = sum(
            spent for reason, (_, spent) in by_reason.items() if reason not in OLD_THROTTLES
        )
        some = sum(by_reason[reason][1] for reason in WRITEBACK_THROTTLES if reason in by_reason)
        return some / whole if whole > 0 else None


def _distance(stamps: Floats) -> float:
    """Mean distance of the samples in seconds; 0 for a single sample."""
    return float(stamps[-1] - stamps[0]) / max(1, len(stamps) - 1)


def throttles_of(names: Iterable[str]) -> list[tuple[str, str]]:
    """(column without kswapd_ and _n, reason) for the columns of a trace that count throttles."""
    reasons = [match[1] for name in names if (match := THROTTLED.fullmatch(name))]
    named = [(f"throttled_{reason}", reason) for reason in dict.fromkeys(reasons)]
    return named + [(name, name) for name in OLD_THROTTLES]


def clauses(machine: RunCounters, begin: float, end: float) -> list[str]:
    """A card's clauses for the span (elapsed s); clauses without a counter are left out."""
    length = end - begin
    if length <= 0:
        return []
    return [
        *_disk(machine, begin, end, length),
        *_traffic(machine, begin, end, length),
        *_own_disks(machine, begin, end, length),
        *_times(machine, begin, end),
        *_reclaim(machine, begin, end, length),
    ]


def _disk(machine: RunCounters, begin: float, end: float, length: float) -> list[str]:
    texts: list[str] = []
    if not machine.disk_counted:
        return texts
    busy = machine.moved("disk_busy_us", begin, end)
    if busy is not None:
        share = _share(busy, length)
        half = share >= 0.5
        texts.append(f"disk busy {_percent(share)}" if half else f"disk idle {_percent(1 - share)}")
    alone = machine.moved("crypt_alone_us", begin, end)
    if alone is not None:
        texts.append(f"dm-crypt alone at work {_percent(_share(alone, length))}")
    return texts


def _share(us: float, length: float) -> float:
    """The share (0 to 1) of `us` µs in a span of `length` s."""
    return min(1.0, us / 1e6 / length)


def _percent(share: float) -> str:
    """'42 %' for 0.42."""
    return f"{100 * share:.0f} %"


def _traffic(machine: RunCounters, begin: float, end: float, length: float) -> list[str]:
    named = (
        ("vmstat", "pswpin", PAGES_PER_MIB, "swap-in"),
        ("vmstat", "pswpout", PAGES_PER_MIB, "swap-out"),
        ("diskstats", "disk_read_sectors", SECTORS_PER_MIB, "read"),
        ("diskstats", "disk_write_sectors", SECTORS_PER_MIB, "written"),
    )
    rates = []
    for table, name, per_mib, what in named:
        moved = machine.moved(name, begin, end, table)
        if moved is not None:
            rates.append(f"{moved / per_mib * 1.048576 / length:.1f} MB/s {what}")
    return rates


def _own_disks(machine: RunCounters, begin: float, end: float, length: float) -> list[str]:
    """Traffic of the workload's own disks together; busy: any has a request in flight."""
    disks = machine.own_disks
    rates = []
    for name, what in (("read_sectors", "read"), ("write_sectors", "written")):
        amounts = [machine.moved(f"{disk}_{name}", begin, end, "diskstats") for disk in disks]
        known = [amount for amount in amounts if amount is not None]
        if known and len(known) == len(disks):
            rate = sum(known) / SECTORS_PER_MIB * 1.048576 / length
            rates.append(f"{rate:.1f} MB/s {what}")
    moved = " and ".join(rates)
    busy = machine.moved("data_busy_us", begin, end)
    if busy is None:
        return [f"on the workload's own disks {moved}"] if rates else []
    share = _percent(_share(busy, length))
    return [f"the workload's own disks busy {share}{' with ' if rates else ''}{moved}"]


def _times(machine: RunCounters, begin: float, end: float) -> list[str]:
    """Mean time of a read: of dm-crypt with the disk under it, and of the disk only."""
    means = []
    for device in ("crypt", "disk"):
        reads = machine.moved(f"{device}_reads", begin, end)
        spent = machine.moved(f"{device}_read_us", begin, end)
        means.append(spent / reads / 1e3 if reads and spent is not None and reads >= 1 else None)
    crypt, disk = means
    if crypt is not None and disk is not None:
        return [f"a read took {crypt:.1f} ms, {disk:.1f} ms on the disk itself"]
    if disk is not None:
        return [f"a read took {disk:.1f} ms on the disk"]
    return []


def _reclaim(machine: RunCounters, begin: float, end: float, length: float) -> list[str]:
    texts = []
    awake = machine.moved("kswapd_awake_us", begin, end)
    if awake is not None:
        texts.append(f"kswapd awake {_percent(_share(awake, length))}")
    reclaims = machine.moved("direct_reclaims", begin, end)
    spent = machine.moved("direct_reclaim_us", begin, end)
    if reclaims is not None and spent is not None:
        texts.append(f"direct reclaim {round(reclaims):,} times, {spent / 1e6:.1f} s")
    in_group = machine.moved("memcg_reclaims", begin, end)
    spent = machine.moved("memcg_reclaim_us", begin, end)
    if in_group and round(in_group) and spent is not None:
        texts.append(f"reclaim in a memory cgroup {round(in_group):,} times, {spent / 1e6:.1f} s")
    for reason, (number, seconds) in machine.throttles(begin, end).items():
        if number:
            words = reason if reason in OLD_THROTTLES else f"throttled on {reason}"
            texts.append(f"{words} {number:,} times, {seconds:.1f} s")
    failed = machine.moved("alloc_failures", begin, end)
    failures = machine.run.evidence.failures
    if failed is None and failures is not None:
        failed = sum(failure.count for failure in failures if begin <= failure.at <= end)
    if failed and round(failed):
        texts.append(f"{round(failed):,} page allocations failed (harmless ones included)")
    return texts
