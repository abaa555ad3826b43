# SPDX-License-Identifier: GPL-2.0-or-later
"""Delay accounting of single tasks: struct taskstats over generic netlink, by hand.

Documentation/accounting/taskstats.rst and delay-accounting.rst; include/uapi/linux/taskstats.h,
which grew at its end (version 10 in 5.10, 13 in 6.1, 14 in 6.12, 17 in 7.2), but for version 15 of
6.14, which put a maximum and a minimum behind each total (kernel commits 658eb5ab916d and
f65c64f311ee); 16 moved them to the end. A version whose layout is not known here, or whose size is
not what it should be, is decoded as far as the kernel's answer about ourselves proves it.
Needs CAP_NET_ADMIN. Imports next to nothing: all of it is locked in memory.
"""

from __future__ import annotations

import _socket
import os
import struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

NETLINK_GENERIC = 16
NLM_F_REQUEST = 1
NLMSG_ERROR = 2
GENL_ID_CTRL, CTRL_CMD_GETFAMILY, CTRL_ATTR_FAMILY_ID, CTRL_ATTR_FAMILY_NAME = 16, 3, 1, 2
TASKSTATS_CMD_GET, TASKSTATS_CMD_ATTR_PID = 1, 1
TYPE_PID, TYPE_STATS, TYPE_AGGR_PID = 1, 3, 4
HEADERS = struct.Struct("=IHHIIBBH")  # nlmsghdr, then genlmsghdr
ATTRIBUTE = struct.Struct("=HH")
REQUEST = struct.Struct("=IHHIIBBHHHI")
TIMEOUT_S = 2.0
REPLY_BYTES = 4096
BATCH = 32  # requests sent at once: their answers fit into the socket's buffer
NAMES = ("cpu", "rq", "blkio", "swapin", "freepages", "thrashing", "compact", "wpcopy", "irq")
KNOWN = range(10, 18)
# Of every known version but 15: what begins where.
COMM, PID, PPID, MINFLT, MAJFLT = 80, 128, 132, 168, 176
TOTALS = {  # name: (offset of its total, the version that it came with)
    "cpu": (72, 1),
    "rq": (24, 1),
    "blkio": (40, 1),
    "swapin": (56, 1),
    "freepages": (320, 7),
    "thrashing": (336, 9),
    "compact": (360, 11),
    "wpcopy": (408, 13),
    "irq": (424, 14),
}
SIZES = {10: 352, 11: 368, 12: 400, 13: 416, 14: 432, 15: 560, 16: 560, 17: 688}
# Version 15: how many pairs of (max, min) stand before each field.
PAIRS_15 = {
    **{"cpu": 3, "rq": 0, "blkio": 1, "swapin": 2, "freepages": 3, "thrashing": 4},
    **{"compact": 5, "wpcopy": 6, "irq": 7},
}
HEAD_PAIRS_15 = 3  # before ac_comm and what follows it


class TaskstatsError(Exception):
    """No taskstats here, or none that can be told; one line."""


class Layout:
    """Where each value stands in a struct taskstats of this version and size.

    `names`: the delays that it has. An unknown version has those of its head, up to ac_majflt,
    which `proven` says whether to believe.
    """

    def __init__(self, version: int, size: int) -> None:
        self.known = version in KNOWN and SIZES[version] == size
        head = 16 * HEAD_PAIRS_15 if version == 15 else 0
        self.comm, self.pid, self.ppid = COMM + head, PID + head, PPID + head
        self.minflt, self.majflt = MINFLT + head, MAJFLT + head
        if size < self.majflt + 8:
            raise TaskstatsError(f"taskstats: version {version} with {size} bytes only")
        self.offsets = {
            name: offset + (16 * PAIRS_15[name] if version == 15 else 0)
            for name, (offset, since) in TOTALS.items()
            if (since <= version if self.known else since == 1)
        }
        self.names = [name for name in NAMES if name in self.offsets]


class Reading:
    """What the kernel said of one task: pid, ppid, comm, faults, and each delay's total in ns."""

    __slots__ = ("comm", "majflt", "minflt", "ns", "pid", "ppid")

    def __init__(self, stats: bytes, layout: Layout) -> None:
        self.comm = stats[layout.comm : layout.comm + 32].partition(b"\0")[0]
        self.pid, self.ppid = struct.unpack_from("=II", stats, layout.pid)
        self.minflt, self.majflt = struct.unpack_from("=QQ", stats, layout.minflt)
        self.ns = [struct.unpack_from("=Q", stats, layout.offsets[n])[0] for n in layout.names]


def attributes(data: bytes | memoryview, begin: int, end: int) -> Iterator[tuple[int, int, int]]:
    """(type, begin, end of its value) of each netlink attribute; TaskstatsError if one is cut."""
    while begin + 4 <= end:
        length, kind = ATTRIBUTE.unpack_from(data, begin)
        if length < 4 or begin + length > end:
            raise TaskstatsError("taskstats: an answer with attributes that do not fit")
        yield kind & 0x3FFF, begin + 4, begin + length
        begin += (length + 3) & ~3


def statistics(message: bytes) -> tuple[int, int]:
    """Where in an answer to TASKSTATS_CMD_GET struct taskstats begins and ends.

    TaskstatsError if it has none.
    """
    if len(message) < HEADERS.size:
        raise TaskstatsError("taskstats: an answer that was cut short")
    length, kind = HEADERS.unpack_from(message)[:2]
    if kind == NLMSG_ERROR:
        (number,) = struct.unpack_from("=i", message, 16)
        raise TaskstatsError(f"taskstats: {os.strerror(abs(number))}")
    if not HEADERS.size <= length <= len(message):
        raise TaskstatsError("taskstats: an answer that was cut short")
    for outer, begin, end in attributes(message, HEADERS.size, length):
        if outer == TYPE_AGGR_PID:
            for inner, first, last in attributes(message, begin, end):
                if inner == TYPE_STATS:
                    return first, last
    raise TaskstatsError("taskstats: an answer without statistics")


def layout_of(stats: bytes) -> Layout:
    """The layout of this struct taskstats, by its version and size; TaskstatsError if too short."""
    if len(stats) < 16:
        raise TaskstatsError("taskstats: a structure that was cut short")
    return Layout(struct.unpack_from("=H", stats)[0], len(stats))


class Taskstats:
    """The kernel's accounts of tasks by their numbers. `version`; `names`: the delays it has."""

    def __init__(self) -> None:
        """TaskstatsError if this kernel has none, or does not let us see them."""
        try:
            self._socket = _socket.socket(_socket.AF_NETLINK, _socket.SOCK_RAW, NETLINK_GENERIC)
            self._socket.bind((0, 0))
            self._socket.settimeout(TIMEOUT_S)
        except OSError as error:
            raise TaskstatsError(f"taskstats: {error.strerror}") from None
        self._buffer = bytearray(REPLY_BYTES)
        self._sequence = 0
        self._requests = bytearray(REQUEST.size * BATCH)
        self._family = self._find_family()
        pid = os.getpid()
        message = self.ask(pid)
        begin, end = statistics(message)
        stats = message[begin:end]
        layout = layout_of(stats)
        own = Reading(stats, layout)
        with open("/proc/self/comm", "rb", buffering=0) as handle:
            comm = handle.read(64).rstrip(b"\n")
        self.version = int(struct.unpack_from("=H", stats)[0])
        if (own.pid, own.ppid, own.comm) != (pid, os.getppid(), comm):
            raise TaskstatsError(f"taskstats: version {self.version} cannot be told")
        self.names = layout.names
        if not own.ns[layout.names.index("cpu")]:  # this process has run
            raise TaskstatsError("taskstats: this kernel counts no delays (CONFIG_TASK_DELAY_ACCT)")
        # One unpacking of a whole answer: what stands where in it never changes.
        self._length = len(message)
        places = [layout.offsets[name] for name in layout.names]
        text, at = "=8xI", 12 - begin  # the sequence number comes first
        for place in sorted(places):
            text += f"{place - at}xQ"
            at = place + 8
        self._values = struct.Struct(text)
        self._text = b"%d\t" * len(layout.names)
        self._order = [1 + sorted(places).index(place) for place in places]

    def read(self, pids: Sequence[int]) -> list[bytes | None]:
        """For each task the µs of each of `names` with a tab behind it; None: it is gone."""
        found: list[bytes | None] = []
        for at in range(0, len(pids), BATCH):
            found += self._read(pids[at : at + BATCH])
        return found

    def ask(self, pid: int) -> bytes:
        """The kernel's whole answer about one task."""
        return self._exchange(REQUEST.pack(*self._request(pid)))

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()

    def _read(self, pids: Sequence[int]) -> list[bytes | None]:
        first = self._sequence + 1
        size = REQUEST.size
        for index, pid in enumerate(pids):
            REQUEST.pack_into(self._requests, index * size, *self._request(pid))
        found: list[bytes | None] = [None] * len(pids)
        try:
            self._socket.send(memoryview(self._requests)[: size * len(pids)])
            left = len(pids)
            while left:
                length = self._socket.recv_into(self._buffer)
                values = self._values.unpack_from(self._buffer)
                index = values[0] - first
                if not 0 <= index < len(pids):
                    continue  # the answer to something that we no longer wait for
                left -= 1
                if length == self._length:
                    micros = [values[place] // 1000 for place in self._order]
                    found[index] = self._text % (*micros,)
        except OSError:
            return found
        return found

    def _request(self, pid: int) -> tuple[int, ...]:
        self._sequence += 1
        head = (REQUEST.size, self._family, NLM_F_REQUEST, self._sequence, 0)
        return (*head, TASKSTATS_CMD_GET, 1, 0, 8, TASKSTATS_CMD_ATTR_PID, pid)

    def _exchange(self, request: bytes) -> bytes:
        try:
            self._socket.send(request)
            length = self._socket.recv_into(self._buffer)
        except OSError as error:
            raise TaskstatsError(f"taskstats: {error.strerror or error}") from None
        return bytes(self._buffer[:length])

    def _find_family(self) -> int:
        self._sequence += 1
        name = struct.pack("=HH12s", 14, CTRL_ATTR_FAMILY_NAME, b"TASKSTATS\0")
        head = (HEADERS.size + len(name), GENL_ID_CTRL, NLM_F_REQUEST, self._sequence, 0)
        message = self._exchange(HEADERS.pack(*head, CTRL_CMD_GETFAMILY, 1, 0) + name)
        if len(message) < HEADERS.size or HEADERS.unpack_from(message)[1] == NLMSG_ERROR:
            raise TaskstatsError("taskstats: this kernel has none")
        for kind, begin, _end in attributes(message, HEADERS.size, len(message)):
            if kind == CTRL_ATTR_FAMILY_ID:
                return int(struct.unpack_from("=H", message, begin)[0])
        raise TaskstatsError("taskstats: this kernel has none")


def delay_accounting() -> bool:
    """Whether delays are counted: kernel.task_delayacct (5.14 on), always on before that.

    Kernel commits e4042ad49235 (off by default) and 0cd7c741f01d (the sysctl). Then only of tasks
    that began since.
    """
    try:
        with open("/proc/sys/kernel/task_delayacct", "rb", buffering=0) as handle:
            return handle.read(8).strip() == b"1"
    except OSError:
        with open("/proc/cmdline", "rb", buffering=0) as handle:
            return b"nodelayacct" not in handle.read(4096).split()
