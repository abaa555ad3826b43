# SPDX-License-Identifier: GPL-2.0-or-later
"""One *.tsv of counters, of which only the columns that are asked for are read.

docs/reference/results-format.md has the columns.

A kernel has 200 counters and a figure needs ten. Every cell is looked at all the same, so that
damage is named; an undamaged file is looked at as a whole, a damaged one row by row.
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

# Read at once with the file, because the metrics and the pictures ask for them; any other column
# is read when it is asked for, from the file again.
FREQUENT = frozenset(
    (
        *(STAMP, LATE, "nr_writeback", "pswpin", "pswpout", "pgpgin", "pgpgout"),
        *("MemFree", "SwapTotal", "SwapFree", "memory_some_us", "memory_full_us", "io_some_us"),
    )
)
MOST_ROWS = 500_000  # thirty hours of a sample each 0.25 s
MOST_COLUMNS = 10_000  # a kernel's counters are some 230
NUMBER = re.compile(rb"\d{1,20}(\.\d{1,9})?")
DIGITS, DECIMALS = 20, 9  # at most, of a cell
NEWLINE, DOT = b"\n."


@dataclass
class Table:
    """One *.tsv: column name -> values, NaN where a cell was empty; rows in order of time.

    `columns` holds those that were read so far, `elapsed_s` always; `get` reads the others.
    """

    columns: dict[str, Floats]
    problems: list[str] = field(default_factory=list)
    names: tuple[str, ...] = ()
    path: Path | None = None
    digest: int = 0

    def get(self, name: str) -> Floats | None:
        """The column, or None if this kernel does not have it or no cell of it could be read."""
        if name not in self.columns and name in self.names:
            self.columns[name] = self.read((name,))[name]
        values = self.columns.get(name)
        return None if values is None or not np.isfinite(values).any() else values

    def read(self, names: Collection[str]) -> dict[str, Floats]:
        """These columns, which the file has, and the stamps: read at once, and not kept.

        UserError if the file was changed since it was loaded.
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
    """The table in this file, at first these columns of it (None: all).

    None, and why is in problems, if there is none in it.
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
    """A *.tsv with these columns of it (or all); None without a whole header with `elapsed_s`."""
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
    """The columns that a table has; none if they are more than any has."""
    fits = header.count(b"\t") < MOST_COLUMNS
    return header.decode("ascii", "replace").split("\t") if fits else []


def _read(
    rest: bytes, width: int, stamp: int, indices: list[int], problems: list[str]
) -> list[Floats]:
    """The columns at indices of the rows that are whole; what was left out is in problems."""
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
    """The columns at indices if every cell is a number or empty, and every row whole; else None."""
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
    """The numbers of undamaged cells, NaN for empty ones."""
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
    """Whether every cell is the first one, and that not empty: so are half of a kernel's."""
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
    steps = ends + 1  # a cell's length and 1
    steps[1:] -= ends[:-1] + 1
    if steps.max(initial=0) > DIGITS + 1 or np.any(steps[stamp::width] == 1):
        return None
    dots = np.flatnonzero(chars == DOT)
    cell = np.searchsorted(ends, dots)
    after = ends[cell] - dots  # its decimals and 1
    lone = not np.any(np.diff(cell) == 0)
    if not lone or np.any((after < 2) | (after > DECIMALS + 1) | (after + 1 >= steps[cell])):
        return None
    return ends.reshape(-1, width)


def row_by_row(
    rest: bytes, width: int, stamp: int, indices: list[int]
) -> tuple[list[Floats], int, int]:
    """The columns at indices of the rows that are whole; how many rows and cells were left out."""
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
    """Say when samples are missing: a long step that its sample's own lateness does not explain."""
    stamps, late = columns[STAMP], columns.get(LATE)
    if late is None or len(stamps) < 3:
        return
    steps = np.diff(stamps)
    unexplained = steps - np.nan_to_num(late[1:]) > 10 * np.median(steps) + 1
    if unexplained.any():
        problems.append(f"samples are missing at {count(int(unexplained.sum()), 'place')}")
