# SPDX-License-Identifier: GPL-2.0-or-later
"""Reclaim, throttling, compaction, block IO and failed allocations, as the kernel sees them.

Nothing is streamed: BPF programs add up in the kernel, and the sums are read a few times a second.
docs/TRACING.md has what each is made of. Everything here is made before the load: then cells()
reads mapped memory, and failures() makes one system call if there were none.
"""

from __future__ import annotations

import os
import time
from struct import unpack

from monitors.trace import bpf
from monitors.trace.bpf_asm import R0, R2, R10, Asm
from monitors.trace.bpf_block import IN_FLIGHT_BYTES
from monitors.trace.bpf_programs import FAILURE_BYTES, FAILURE_KEY_BYTES, FRAMES, TASK_BYTES, Maps
from monitors.trace.columns import ALWAYS, Offer, reason_of, whole_disk
from monitors.trace.in_flight import InFlight
from monitors.trace.kallsyms import Kallsyms
from monitors.trace.tracepoints import find_tracefs, print_flags, read_format

TYPE_CHECKING = False  # what only annotations name is not loaded
if TYPE_CHECKING:
    from collections.abc import Iterable

    from monitors.trace.columns import Group, Program

# Entries of the maps. A map is allocated whole: 1024 bios take 100 KiB.
BEGUN, TASKS, FAILURES = 512, 512, 256
IN_FLIGHT = {"disk": 512, "crypt": 4096}
KNOWN = 1024  # addresses whose names are kept
TRIES = 8  # to read all sums of one moment
# Columns whose sums are in µs; all other times are summed in ns.
IN_US = ("throttled_", "congestion_wait", "wait_iff_congested")
# Columns with a span that may be open: its number in one_moment().
OPEN = {"kswapd_awake_us": 1, "disk_busy_us": 2, "crypt_busy_us": 3, "crypt_alone_us": 4}

# Where some of the sums that are there in any case are.
STAMP, DISK, CRYPT, DISK_DROPPED, CRYPT_DROPPED, AWAKE, NO_ROOM = map(
    ALWAYS.index,
    (
        *("block_stamp", "disk_in_flight", "crypt_in_flight", "disk_dropped", "crypt_dropped"),
        *("kswapd_awake_now", "no_room"),
    ),
)

Failure = tuple[int, int, int, bytes, int, int, tuple[int, ...]]
Reclaimer = tuple[int, bytes, int, int, int]


class Trace:
    """What this kernel offers of it, summed from now on. Never raises for what is missing.

    devices: names of block devices (`{"disk": "vdb", "crypt": "dm-0"}`); of a partition its whole
    disk is watched. not_available: what is missing, with the reason; problems: what went wrong;
    columns: what cells() gives; gfp_flags: __print_flags's table, in its order.
    """

    def __init__(self, devices: dict[str, str], root: str = "") -> None:
        self.problems: list[str] = []
        self.gfp_flags: dict[str, int] = {}
        self.columns: list[bytes] = []
        self._root = root
        self._closing: list[int] = []
        self._sums: bpf.Sums | None = None
        self._cells: list[tuple[int, int, int]] = []  # number of the sum, divisor, of the open span
        self._last: list[int] = []
        self._tasks: bpf.Map | None = None
        self._failures: bpf.Map | None = None
        self._watched: list[InFlight] = []
        self._symbols: Kallsyms | None = None
        self._known: dict[int, bytes] = {}
        tracefs = find_tracefs(root)
        if tracefs and (format := read_format(tracefs, "kmem/mm_page_alloc")):
            self.gfp_flags = print_flags(format)
        offer = Offer(tracefs, devices, root)
        self.not_available = offer.not_available
        if offer.groups:
            try:
                self._attach(offer.groups, devices)
            except OSError as error:
                self.not_available.append(f"BPF: {reason_of(error)}")

    def cells(self) -> list[bytes]:
        """The columns' values now, since the beginning; an open span counts as far as it is."""
        if self._sums is None:
            return []
        for watched in self._watched:
            watched.check(time.monotonic_ns())
        values, opened = one_moment(self._sums)
        found = []
        for number, (at, divisor, span) in enumerate(self._cells):
            # A program may be at work between two numbers: never let one seem to go back.
            value = max(self._last[number], (values[at] + opened[span]) // divisor)
            self._last[number] = value
            found.append(b"%d" % value)
        return found

    def failures(self) -> list[Failure]:
        """Failed allocations that were not told yet, at most FAILURES rows of them:
        (CLOCK_MONOTONIC ns of the first, count, pid, comm, order, gfp, return addresses)."""
        found: list[Failure] = []
        if self._failures is None:
            return found
        try:
            while len(found) < FAILURES:
                key, value = self._failures.pop()
                pid, order, gfp = unpack("III", key[:12])
                count, first, comm, *stack = unpack(f"QQ16s{FRAMES}Q", value)
                addresses = tuple(address for address in stack if address)
                found.append((first, count, pid, _text(comm), order, gfp, addresses))
        except KeyError:
            pass
        except OSError as error:
            self._problem(f"failed allocations: {reason_of(error)}")
        return found

    def reclaimers(self) -> list[Reclaimer]:
        """The tasks that were in direct reclaim: (pid, comm, times, µs, pages)."""
        found: list[Reclaimer] = []
        for key, value in self._tasks.items(2 * TASKS) if self._tasks else []:
            count, nanoseconds, pages, comm = unpack("QQQ16s", value)
            pid = int.from_bytes(key[:4], "little")
            found.append((pid, _text(comm), count, nanoseconds // 1000, pages))
        return sorted(found)

    def forget(self) -> None:
        """What failed and who reclaimed until now is not the workload's."""
        while self.failures():
            pass
        if self._tasks is not None:
            for key, _value in self._tasks.items(2 * TASKS):
                self._tasks.remove(key)

    def symbols(self, addresses: Iterable[int]) -> dict[int, bytes]:
        """The functions of return addresses; an address in hex where there is no name."""
        table, known = self._symbols, self._known
        found = {}
        for address in addresses:
            name = known.get(address)
            if name is None:
                name = table.name(address) if table else b"0x%x" % address
                if len(known) < KNOWN:
                    known[address] = name
            found[address] = name
        return found

    def close(self) -> None:
        """Take all programs away. What did not fit into the maps is named in problems."""
        if self._sums is not None:
            missed = self._sums.read()[NO_ROOM]
            if missed:
                self._problem(f"trace: {missed} entries found no room in a map")
        for fd in reversed(self._closing):
            os.close(fd)
        self._closing.clear()
        for watched in self._watched:
            if watched.dropped:
                self._problem(f"trace: {watched.dropped} ends of {watched.name} were not seen")
            watched.close()
        self._watched.clear()
        self._tasks = self._failures = self._sums = None

    def _attach(self, groups: list[Group], devices: dict[str, str]) -> None:
        bpf.unlimited_memlock()
        more = (_sum_of(column)[0] for group in groups for column in group.columns)
        names = list(dict.fromkeys((*ALWAYS, *more)))
        sums = bpf.Sums(len(names))
        self._closing.append(sums.fd)
        begun = self._map(bpf.HASH, 8, 8, BEGUN)
        tasks = self._map(bpf.HASH, 8, TASK_BYTES, TASKS)
        failures = self._map(bpf.HASH, FAILURE_KEY_BYTES, FAILURE_BYTES, FAILURES)
        scratch = self._map(bpf.PERCPU_ARRAY, 4, FAILURE_BYTES, 1)
        in_flight = {
            name: self._map(bpf.HASH, 8, IN_FLIGHT_BYTES, entries)
            for name, entries in IN_FLIGHT.items()
            if name in devices
        }
        maps = Maps(
            sums=sums.fd,
            begun=begun.fd,
            tasks=tasks.fd,
            failures=failures.fd,
            scratch=scratch.fd,
            in_flight={name: found.fd for name, found in in_flight.items()},
            at={name: 8 * number for number, name in enumerate(names)},
            exact=_can_replace(),
        )
        for group in groups:
            try:
                for program in group.programs(maps):
                    self._attach_one(program)
            except (OSError, LookupError) as error:
                self.not_available.append(f"{group.what}: {reason_of(error)}")
                continue
            for column in group.columns:
                name, divisor = _sum_of(column)
                self.columns.append(column.encode())
                self._cells.append((names.index(name), divisor, OPEN.get(column, 0)))
        self._last = [0] * len(self._cells)
        if b"alloc_failures" in self.columns:
            self._failures = failures
            try:
                self._symbols = Kallsyms(self._root)
                if not len(self._symbols):
                    self.not_available.append("function names: hidden (kernel.kptr_restrict)")
            except OSError as error:
                self.not_available.append(f"function names: {reason_of(error)}")
        for name, entries in in_flight.items():
            if f"{name}_reads".encode() not in self.columns:
                continue
            folder = whole_disk(devices[name], self._root)
            try:
                self._watched.append(InFlight(name, folder, entries, sums))
            except OSError as error:
                self.not_available.append(f"requests in flight: {reason_of(error)}")
        self._tasks, self._sums = tasks, sums

    def _map(self, kind: int, key: int, value: int, entries: int) -> bpf.Map:
        found = bpf.Map(kind, key, value, entries)
        self._closing.append(found.fd)
        return found

    def _attach_one(self, program: Program) -> None:
        btf_id = program.number if program.kind == bpf.TRACING else 0
        code = bpf.load(program.kind, program.code, program.where.rpartition("/")[2], btf_id)
        self._closing.append(code)
        if program.kind == bpf.TRACEPOINT:
            link = bpf.attach_tracepoint(code, program.number)
        elif program.kind == bpf.KPROBE:
            link = bpf.attach_kprobe(code, program.number, program.where)
        else:
            link = bpf.attach_tracing(code)
        self._closing.append(link)

    def _problem(self, text: str) -> None:
        if text not in self.problems:
            self.problems.append(text)


def one_moment(sums: bpf.Sums) -> tuple[tuple[int, ...], tuple[int, int, int, int, int]]:
    """All sums, and what is to be added to them for the spans that are open, by OPEN's numbers.

    Of one moment (a program that stands between two of them then makes it too little); where there
    is no such moment open spans wait for the next row.
    """
    values = sums.read()
    for _ in range(TRIES):
        now = time.monotonic_ns()
        before, values = values, sums.read()
        if before[: len(ALWAYS)] != values[: len(ALWAYS)]:
            continue
        disk = values[DISK] - values[DISK_DROPPED]
        crypt = values[CRYPT] - values[CRYPT_DROPPED]
        awake = values[AWAKE]
        since = max(0, now - values[STAMP])
        return values, (
            0,
            awake * now,
            since if disk > 0 else 0,
            since if crypt > 0 else 0,
            since if crypt > 0 and disk <= 0 else 0,
        )
    return values, (0, 0, 0, 0, 0)


def _sum_of(column: str) -> tuple[str, int]:
    """The sum that a column is made of, and its divisor."""
    if column.endswith("_us") and not column.removeprefix("kswapd_").startswith(IN_US):
        return column.removesuffix("us") + "ns", 1000
    return column, 1


def _can_replace() -> bool:
    """Whether this kernel has an atomic compare-and-exchange for programs (5.12)."""
    asm = Asm()
    for register in (R0, R2):
        asm.alu(register, "=", 0)
    asm.store(R10, -8, 0)
    asm.replace(R10, -8, R2)
    asm.exit()
    try:
        os.close(bpf.load(bpf.TRACEPOINT, asm.bytes(), "probe"))
    except OSError:
        return False
    return True


def _text(comm: bytes) -> bytes:
    return comm.partition(b"\0")[0]
