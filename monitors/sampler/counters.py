# SPDX-License-Identifier: GPL-2.0-or-later
"""The kernel's counters as rows of a table: /proc/vmstat, meminfo, pressure and block devices.

Each file is opened once and read from 0 for each sample: no path look-up and no fork under load.
A file or counter that this kernel lacks has no column and is named in `not_available`.
Measured natively, four tables: 50 us warm, 200 us after a sleep (cold caches); TCG: 0.7 and 2 ms.
"""

from __future__ import annotations

import os

from contract.run_files import DISKSTATS, LATE, MEMINFO, PRESSURE, STAMP, VMSTAT

CHUNK = 16384
STAT_FIELDS = (
    ("reads", 0),
    ("read_sectors", 2),
    ("read_ms", 3),
    ("writes", 4),
    ("write_sectors", 6),
    ("write_ms", 7),
    ("in_flight", 8),
    ("io_ms", 9),
    ("queue_ms", 10),
)
PSI = (("memory", ("some", "full")), ("io", ("some", "full")), ("cpu", ("some",)))


class Source:
    """One file of counters: pread() from 0, in as many pieces as the kernel hands out."""

    def __init__(self, path: str) -> None:
        self._fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        data = b""
        # PSI that is built in but off opens, and fails only when read.
        while piece := os.pread(self._fd, CHUNK, len(data)):
            data += piece
        self._lines = data.count(b"\n")

    def read(self) -> bytes:
        """The whole file: a seq_file hands out a page a call, so a short read is not the end.

        How many lines there are never changes, and asking once more at the end would cost as much
        as a page: /proc/vmstat adds up all its counters anew for each call.
        """
        data = os.pread(self._fd, CHUNK, 0)
        while data.count(b"\n") < self._lines:
            piece = os.pread(self._fd, CHUNK, len(data))
            if not piece:
                break
            data += piece
        return data


class Table:
    """One result file: its column names, and its cells of this moment."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.columns: list[bytes] = []

    def cells(self) -> list[bytes]:
        """The values of the columns now; an empty cell could not be read."""
        raise NotImplementedError

    def header(self) -> bytes:
        """The first line of the file."""
        return b"\t".join([STAMP.encode(), LATE.encode(), *self.columns]) + b"\n"


class Named(Table):
    """`name value` lines: /proc/vmstat, and /proc/meminfo with its colons and units."""

    def __init__(self, name: str, source: Source) -> None:
        super().__init__(name)
        self._source = source
        self._names, _values = self._parse()
        self.columns = [field.rstrip(b":") for field in self._names]

    def _parse(self) -> tuple[list[bytes], list[bytes]]:
        words = self._source.read().replace(b" kB", b"").split()
        return words[0::2], words[1::2]

    def cells(self) -> list[bytes]:
        try:
            names, values = self._parse()
        except OSError:
            return [b""] * len(self.columns)
        if names == self._names:
            return values
        found = dict(zip(names, values, strict=False))
        return [found.get(name, b"") for name in self._names]


class Pressure(Table):
    """`total=` of /proc/pressure/*, in microseconds."""

    def __init__(self, name: str, sources: list[tuple[str, tuple[str, ...], Source]]) -> None:
        super().__init__(name)
        self._sources = [(source, len(kinds)) for _what, kinds, source in sources]
        self.columns = [f"{what}_{k}_us".encode() for what, kinds, _s in sources for k in kinds]

    def cells(self) -> list[bytes]:
        found: list[bytes] = []
        for source, count in self._sources:
            try:
                # some avg10=… total=N, then full avg10=… total=N, always in this order.
                parts = source.read().split(b"total=")[1 : count + 1]
            except OSError:
                parts = []
            found += [part.split(None, 1)[0] for part in parts]
            found += [b""] * (count - len(parts))
        return found


class Devices(Table):
    """/sys/class/block/NAME/stat of each watched device."""

    def __init__(self, name: str, sources: list[tuple[str, Source]]) -> None:
        super().__init__(name)
        self._sources = [source for _prefix, source in sources]
        self.columns = [f"{prefix}_{f}".encode() for prefix, _s in sources for f, _i in STAT_FIELDS]

    def cells(self) -> list[bytes]:
        found: list[bytes] = []
        for source in self._sources:
            try:
                words = source.read().split()
                found += [words[index] for _field, index in STAT_FIELDS]
            except (OSError, IndexError):
                found += [b""] * len(STAT_FIELDS)
        return found


class Counters:
    """All tables of a sample. devices: column prefix -> kernel name (`{"swap": "dm-2"}`)."""

    def __init__(self, devices: dict[str, str], root: str = "") -> None:
        self.not_available: list[str] = []
        self.tables: list[Table] = []
        for name in (VMSTAT, MEMINFO):
            source = self._open(f"{root}/proc/{name}", f"/proc/{name}")
            if source:
                self.tables.append(Named(name, source))
        found = []
        for what, kinds in PSI:
            source = self._open(f"{root}/proc/pressure/{what}", f"/proc/pressure/{what}")
            if source:
                there = tuple(kind for kind in kinds if f"{kind} ".encode() in source.read())
                self.not_available += [
                    f"/proc/pressure/{what} {kind}" for kind in kinds if kind not in there
                ]
                found.append((what, there, source))
        if found:
            self.tables.append(Pressure(PRESSURE, found))
        disks = []
        for prefix, device in devices.items():
            source = self._open(f"{root}/sys/class/block/{device}/stat", f"block device {device}")
            if source:
                disks.append((prefix, source))
        if disks:
            self.tables.append(Devices(DISKSTATS, disks))

    def _open(self, path: str, called: str) -> Source | None:
        try:
            return Source(path)
        except OSError:
            self.not_available.append(called)
            return None
