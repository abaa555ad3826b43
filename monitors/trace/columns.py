# SPDX-License-Identifier: GPL-2.0-or-later
"""Which columns this kernel can give, and the programs that each group of them needs."""

from __future__ import annotations

import os
import struct

from monitors.trace import bpf, bpf_block, bpf_programs
from monitors.trace.bpf_programs import COMPACTION, DIRECT, MEMCG
from monitors.trace.btf import BadBtf, kernel_btf
from monitors.trace.tracepoints import read_format, throttle_reasons

TYPE_CHECKING = False  # what only annotations name is not loaded
if TYPE_CHECKING:
    from collections.abc import Callable

    from monitors.trace.bpf_programs import Maps
    from monitors.trace.tracepoints import Field, Format

# Sums that are there in any case: what an open span is reckoned with, and what found no room.
# dropped: of those in flight, by monitors.trace.in_flight alone.
ALWAYS = (
    "block_stamp",
    "disk_in_flight",
    "crypt_in_flight",
    "disk_dropped",
    "crypt_dropped",
    "kswapd_awake_now",
    "kswapd_awake_ns",
    "disk_busy_ns",
    "crypt_busy_ns",
    "crypt_alone_ns",
    "no_room",
)
BLOCK_COLUMNS = ("reads", "read_us", "writes", "write_us", "busy_us")


class Program:
    """Code and where it belongs: a tracepoint's or a function's name, and the number of its format
    file, of its type or of the PMU."""

    def __init__(self, kind: int, code: bytes, where: str, number: int) -> None:
        self.kind = kind
        self.code = code
        self.where = where
        self.number = number


class Group:
    """Columns that are there together or not at all. programs: in the order of attaching them."""

    def __init__(
        self, what: str, columns: list[str], programs: Callable[[Maps], list[Program]]
    ) -> None:
        self.what = what
        self.columns = columns
        self.programs = programs


class Offer:
    """The groups that this kernel can be asked for; not_available says what it has not."""

    def __init__(self, tracefs: str | None, devices: dict[str, str], root: str = "") -> None:
        self.groups: list[Group] = []
        self.not_available: list[str] = []
        self._tracefs = tracefs
        if tracefs is None:
            self.not_available.append("tracefs: not mounted, or not for this user")
        else:
            direct = ("direct_reclaim_pages", "direct_reclaim_none")
            self._span("vmscan/mm_vmscan_direct_reclaim", DIRECT, "direct_reclaim", *direct)
            memcg = "memcg_reclaim_pages"
            self._span("vmscan/mm_vmscan_memcg_reclaim", MEMCG, "memcg_reclaim", memcg)
            self._kswapd()
            self._waits()
            self._span("compaction/mm_compaction", COMPACTION, "compaction")
        self._block(devices, root)
        self._failures(root)

    def _formats(self, *names: str) -> list[Format] | None:
        found = [read_format(self._tracefs or "", name) for name in names]
        self.not_available += [n for n, format in zip(names, found, strict=True) if format is None]
        there = [format for format in found if format is not None]
        return there if len(there) == len(names) else None

    def _span(self, tracepoint: str, kind: int, name: str, *more: str) -> None:
        formats = self._formats(f"{tracepoint}_begin", f"{tracepoint}_end")
        if formats is None:
            return
        begin, end = formats

        def programs(maps: Maps) -> list[Program]:
            pages = end.field("nr_reclaimed") if f"{name}_pages" in more else None
            # The end first: what begins before that is attached would stay open.
            ending = bpf_programs.span_end(maps, kind, name, pages)
            beginning = bpf_programs.span_begin(maps, kind)
            return [
                Program(bpf.TRACEPOINT, ending, f"{tracepoint}_end", end.id),
                Program(bpf.TRACEPOINT, beginning, f"{tracepoint}_begin", begin.id),
            ]

        self.groups.append(Group(tracepoint, [f"{name}s", f"{name}_us", *more], programs))

    def _kswapd(self) -> None:
        names = ("vmscan/mm_vmscan_kswapd_sleep", "vmscan/mm_vmscan_kswapd_wake")
        formats = self._formats(*names)
        if formats is None:
            return
        sleep, wake = formats

        def programs(maps: Maps) -> list[Program]:
            asleep = bpf_programs.kswapd_sleep(maps, sleep.field("nid"))
            awake = bpf_programs.kswapd_wake(maps, wake.field("nid"))
            return [
                Program(bpf.TRACEPOINT, asleep, names[0], sleep.id),
                Program(bpf.TRACEPOINT, awake, names[1], wake.id),
            ]

        self.groups.append(Group("mm_vmscan_kswapd", ["kswapd_wakes", "kswapd_awake_us"], programs))

    def _waits(self) -> None:
        for tracepoint in (
            "vmscan/mm_vmscan_throttled",
            "writeback/writeback_congestion_wait",
            "writeback/writeback_wait_iff_congested",
        ):
            formats = self._formats(tracepoint)
            if formats is None:
                continue
            (format,) = formats
            reason: Field | None = None
            if tracepoint.endswith("throttled"):
                try:
                    reason = format.field("reason")
                    names = {f"throttled_{n}": bit for n, bit in throttle_reasons(format).items()}
                except LookupError as error:
                    self.not_available.append(f"{tracepoint}: {reason_of(error)}")
                    continue
            else:
                names = {tracepoint.partition("/writeback_")[2]: 0}
            self.groups.append(_waited(tracepoint, format, names, reason))

    def _block(self, devices: dict[str, str], root: str) -> None:
        numbers: dict[str, tuple[int, int]] = {}
        for prefix in ("disk", "crypt"):
            if prefix in devices:
                folder = whole_disk(devices[prefix], root)
                try:
                    number = device_number(folder)
                    if prefix == "disk" and not takes_requests(folder):
                        raise ValueError("it has no requests of its own")
                    numbers[prefix] = number
                except (OSError, ValueError) as error:
                    self.not_available.append(f"trace of {prefix} {devices[prefix]}: {error}")
            else:
                self.not_available.append(f"trace of {prefix}: no such device here")
        if not numbers:
            return
        try:
            btf = kernel_btf(bpf_block.STRUCTS, bpf_block.TRACEPOINTS, root)
            kinds = bpf_block.kinds(btf, numbers)
        except (OSError, BadBtf, LookupError, struct.error) as error:
            self.not_available.append(f"trace of {' and '.join(numbers)}: {reason_of(error)}")
            return
        columns = [f"{kind.name}_{column}" for kind in kinds for column in BLOCK_COLUMNS]
        if len(kinds) == 2:
            columns.append("crypt_alone_us")

        def programs(maps: Maps) -> list[Program]:
            found = []
            for kind in kinds:
                # Each twice: what one of them misses, since it is at work on this CPU already, the
                # other one sees.
                ends = bpf_block.end(maps, kind)
                found += [Program(bpf.TRACING, ends, *kind.end) for _ in range(2)]
                for again in (False, True):
                    code = bpf_block.begin(maps, kind, again)
                    found.append(Program(bpf.TRACING, code, *kind.begin))
            return found

        self.groups.append(Group(f"trace of {' and '.join(numbers)}", columns, programs))

    def _failures(self, root: str) -> None:
        if os.uname().machine != "x86_64":
            self.not_available.append("alloc_failures: only on x86-64")
            return
        try:
            pmu = bpf.kprobe_pmu(root)
        except (OSError, ValueError):
            self.not_available.append("alloc_failures: no PMU kprobe")
            return

        def programs(maps: Maps) -> list[Program]:
            code = bpf_programs.allocation_failed(maps)
            return [Program(bpf.KPROBE, code, "warn_alloc", pmu)]

        self.groups.append(Group("alloc_failures", ["alloc_failures"], programs))


def _waited(tracepoint: str, format: Format, names: dict[str, int], reason: Field | None) -> Group:
    def programs(maps: Maps) -> list[Program]:
        delayed = format.field("usec_delayed")
        code = bpf_programs.waited(maps, delayed, names, reason)
        return [Program(bpf.TRACEPOINT, code, tracepoint, format.id)]

    columns = [f"{who}{n}_{what}" for who in ("", "kswapd_") for n in names for what in ("n", "us")]
    return Group(tracepoint, columns, programs)


def whole_disk(name: str, root: str = "") -> str:
    """The folder of a block device in sysfs: of a partition that of its disk."""
    folder = f"{root}/sys/class/block/{name}"
    # A link to …/vda/vda1: the kernel follows it before it goes up.
    return f"{folder}/.." if os.access(f"{folder}/partition", os.F_OK) else folder


def takes_requests(folder: str) -> bool:
    """Whether a block device has requests of its own, by its folder in sysfs.

    LVs and other dm devices, md and the common device of NVMe paths only pass bios on: they have no
    hardware queues. Disks have them since 5.0, loop devices too.
    """
    return os.access(f"{folder}/mq", os.F_OK)


def device_number(folder: str) -> tuple[int, int]:
    """(major, minor) of a block device's folder in sysfs."""
    with open(f"{folder}/dev", "rb") as handle:
        major, minor = handle.read().split(b":")
    return int(major), int(minor)


def reason_of(error: Exception) -> str:
    """An exception in a few words."""
    if isinstance(error, OSError):
        return f"{error.filename}: {error.strerror}" if error.filename else str(error.strerror)
    return str(error.args[0]) if error.args else type(error).__name__
