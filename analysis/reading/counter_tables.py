# SPDX-License-Identifier: GPL-2.0-or-later
"""Reads a *.tsv of counters; only the columns that are needed become arrays.

docs/reference/results-format.md has the columns.

A kernel has 200 counters and a figure needs ten. Every cell is checked all the same, so that
damage is reported. An undamaged file is checked as a whole, a damaged file row by row.
"""

import re
import zlib
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from analysis.reading.files import LARGEST, read_file
from analysis.reading.latency_log import (
    MOST_SECONDS,
    Chars,
    Floats,
    Places,
    count,
    digits,
    milliseconds,
    pieces,
    whole_lines,
)
from contract.run_files import LATE, STAMP
from errors import UserError

# Read together with the file, because the metrics and the pictures need them. Any other column is
# read when it is needed, from the file again.
FREQUENT = frozenset(
    (
        *(STAMP, LATE, "nr_writeback", "pswpin", "pswpout", "pgpgin", "pgpgout"),
        *("MemFree", "SwapTotal", "SwapFree", "memory_some_us", "memory_full_us", "io_some_us"),
    )
)
MOST_ROWS = 500_000  # thirty hours with a sample every 0.25 s
MOST_COLUMNS = 10_000  # a kernel has about 230 counters
NUMBER = re.compile(rb"\d{1,20}(\.\d{1,9})?")
DIGITS, DECIMALS = 20, 9  # the most that a cell has
NEWLINE, DOT = b"\n."


@dataclass
class Table:
    """One *.tsv: column name -> values, NaN where a cell was empty; rows in order of time.

    `columns` holds the columns read so far, always `elapsed_s` (seconds since the workload began);
    `get` reads the others. Values have the units of the file. `digest`: CRC-32 of the file.
    """

    columns: dict[str, Floats]
    problems: list[str] = field(default_factory=list)
    names: tuple[str, ...] = ()
    path: Path | None = None
    digest: int = 0

    def get(self, name: str) -> Floats | None:
        """The column; None if this kernel does not have it or none of its cells could be read."""
        if name not in self.columns and name in self.names:
            self.columns[name] = self.read((name,))[name]
        values = self.columns.get(name)
        return None if values is None or not np.isfinite(values).any() else values

    def read(self, names: Collection[str]) -> dict[str, Floats]:
        """Read these columns of the file and the stamps (seconds); they are not kept in `columns`.

        Raises UserError if the file was changed since it was loaded.
        """
        if self.path is None:
            return {name: self.columns[name] for name in {*names, STAMP}}
        raw = read_file(self.path, [])
        if raw is None or zlib.crc32(raw) != self.digest:
            raise UserError(f"{self.path}: was changed while it was read")
        table = parse_table(raw, frozenset(names))
        assert table is not None, "the same bytes were a table before"
        return table.columns


def load_table(
    path: Path,
    problems: list[str],
    wanted: Collection[str] | None = FREQUENT,
    limit: int = LARGEST,
) -> Table | None:
    """The table in this file, with these columns read (None: all).

    limit: bytes of the file that are read. Returns None if the file holds no table; the reason is
    in problems.
    """
    raw = read_file(path, problems, limit)
    if not raw:
        return None
    table = parse_table(raw, wanted)
    if table is None:
        problems.append(f"{path.name}: has no header that can be read, left out")
        return None
    table.path, table.digest = path, zlib.crc32(raw)
    problems += [f"{path.name}: {problem}" for problem in table.problems]
    return table if len(table.columns[STAMP]) else None


def parse_table(raw: bytes, wanted: Collection[str] | None = None) -> Table | None:
    """Parse these columns of a *.tsv (None: all); None without a whole header with `elapsed_s`."""
    problems: list[str] = []
    body = whole_lines(raw, problems)
    header, _, rest = body.partition(b"\n")
    names = names_of(header)
    if STAMP not in names:
        return None
    stamp = names.index(STAMP)
    first = dict(zip(reversed(names), range(len(names) - 1, -1, -1), strict=True))
    indices = [
        index
        for index, name in enumerate(names)
        if first[name] == index and (wanted is None or name in wanted or name in (STAMP, LATE))
    ]
    values = _read(rest, len(names), stamp, indices, problems)
    columns = dict(zip((names[index] for index in indices), values, strict=True))
    if beyond := int(np.count_nonzero(columns[STAMP] >= MOST_SECONDS)):
        problems.append(f"{count(beyond, 'row')} of a time that no run lasts, left out")
        kept = columns[STAMP] < MOST_SECONDS
        columns = {name: column[kept] for name, column in columns.items()}
    steps = np.diff(columns[STAMP])
    if np.any(steps < 0):
        problems.append(f"{count(int(np.sum(steps < 0)), 'row')} out of order, sorted by time")
        order = np.argsort(columns[STAMP], kind="stable")
        columns = {name: column[order] for name, column in columns.items()}
    if len(first) < len(names):
        problems.append("a column is there twice: the first one is taken")
    _check_steps(columns, problems)
    return Table(columns, problems, tuple(dict.fromkeys(names)))


def names_of(header: bytes) -> list[str]:
    """The names of a table's columns; empty if there are more than any table has."""
    fits = header.count(b"\t") < MOST_COLUMNS
    return header.decode("ascii", "replace").split("\t") if fits else []


def _read(
    rest: bytes, width: int, stamp: int, indices: list[int], problems: list[str]
) -> list[Floats]:
    """These columns of all whole rows; what was left out is in problems."""
    parts = [[np.zeros(0)] * len(indices)]
    rows = dropped = unread = 0
    for _, piece in pieces(rest):
        columns = undamaged(piece, width, stamp, indices)
        if columns is None:
            columns, without, cells = row_by_row(piece, width, stamp, indices)
            dropped, unread = dropped + without, unread + cells
        parts.append(columns)
        rows += len(columns[0])
        if rows > MOST_ROWS:
            problems.append(f"only its first {rows:,} rows are read")
            break
    if dropped:
        problems.append(f"{count(dropped, 'row')} could not be read and left out")
    if unread:
        problems.append(f"{count(unread, 'cell')} not a number and left out")
    return [np.concatenate(column) for column in zip(*parts, strict=True)]


def undamaged(rest: bytes, width: int, stamp: int, indices: list[int]) -> list[Floats] | None:
    """These columns, NaN for empty cells; None if a row is not whole or a cell is no number."""
    chars = np.frombuffer(rest, dtype=np.uint8)
    ends = _ends(rest, chars, width, stamp)
    if ends is None:
        return None
    before = np.concatenate(([-1], ends[:-1, -1]))  # where the row before ended
    return [
        _column(
            rest, chars, (ends[:, index - 1] if index else before)[: len(ends)] + 1, ends[:, index]
        )
        for index in indices
    ]


def _column(rest: bytes, chars: Chars, begins: Places, ends: Places) -> Floats:
    """The numbers of undamaged cells; NaN for empty cells."""
    if _never_moved(rest, chars, begins, ends):
        return np.full(len(begins), float(rest[begins[0] : ends[0]]))
    numbers = digits(chars, begins, ends)
    if numbers is not None:
        numbers[begins == ends] = np.nan
        return numbers
    thousandths = milliseconds(chars, begins, ends)
    if thousandths is not None:
        return thousandths / 1000
    pairs = zip(begins.tolist(), ends.tolist(), strict=True)
    return np.array([float(rest[begin:end] or b"nan") for begin, end in pairs])


def _never_moved(rest: bytes, chars: Chars, begins: Places, ends: Places) -> bool:
    """Whether all cells equal the first, which is not empty: half of the counters never change."""
    if not len(begins) or rest[begins[0] : ends[0]] != rest[begins[-1] : ends[-1]]:
        return False
    width = int(ends[0] - begins[0])
    cells = chars[np.minimum(begins[:, np.newaxis] + np.arange(width), len(chars) - 1)]
    return width > 0 and bool(np.all(ends - begins == width) and np.all(cells == cells[0]))


def _ends(rest: bytes, chars: Chars, width: int, stamp: int) -> Places | None:
    """Where each cell ends (rows x width); None if there is any damage."""
    if rest.translate(None, b"0123456789.\t\n"):
        return None
    ends = np.flatnonzero(chars <= NEWLINE)  # tabs and newlines
    if not np.array_equal(ends[width - 1 :: width], np.flatnonzero(chars == NEWLINE)):
        return None
    steps = ends + 1  # the length of each cell plus 1
    steps[1:] -= ends[:-1] + 1
    if steps.max(initial=0) > DIGITS + 1 or np.any(steps[stamp::width] == 1):
        return None
    dots = np.flatnonzero(chars == DOT)
    cell = np.searchsorted(ends, dots)
    after = ends[cell] - dots  # the number of decimals plus 1
    lone = not np.any(np.diff(cell) == 0)
    if not lone or np.any((after < 2) | (after > DECIMALS + 1) | (after + 1 >= steps[cell])):
        return None
    return ends.reshape(-1, width)


def row_by_row(
    rest: bytes, width: int, stamp: int, indices: list[int]
) -> tuple[list[Floats], int, int]:
    """These columns of all whole rows, and how many rows and cells were left out."""
    values: list[list[float]] = [[] for _ in indices]
    unread = dropped = 0
    for row in rest.split(b"\n")[:-1]:
        cells = row.split(b"\t")
        if len(cells) != width or not NUMBER.fullmatch(cells[stamp]):
            dropped += 1
            continue
        good = [NUMBER.fullmatch(cell) is not None for cell in cells]
        unread += sum(map(bool, cells)) - sum(good)
        for column, index in zip(values, indices, strict=True):
            column.append(float(cells[index]) if good[index] else np.nan)
    return [np.array(column, dtype=np.float64) for column in values], dropped, unread


def _check_steps(columns: dict[str, Floats], problems: list[str]) -> None:
    """Report missing samples: long steps that the lateness of the next sample does not explain."""
    stamps, late = columns[STAMP], columns.get(LATE)
    if late is None or len(stamps) < 3:
        return
    steps = np.diff(stamps)
    unexplained = steps - np.nan_to_num(late[1:]) > 10 * np.median(steps) + 1
    if unexplained.any():
        problems.append(f"samples are missing at {count(int(unexplained.sum()), 'place')}")
