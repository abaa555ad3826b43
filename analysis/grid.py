# SPDX-License-Identifier: GPL-2.0-or-later
"""Rows of cells as lines of text: columns under each other, in blocks if they are too wide."""

from collections.abc import Iterable, Iterator, Sequence

from analysis.words import plain

RED, GREEN, CYAN = 31, 32, 36
COLOURS = {
    "worse": RED,
    "regressed": RED,
    "better": GREEN,
    "improved": GREEN,
    "equivalent": CYAN,
}


def grid(rows: Iterable[Sequence[str]], width: int, colour: bool = False) -> list[str]:
    """Rows under each other; the first column gives way if all do not fit."""
    cells = [list(row) for row in rows]
    sizes = [max(map(len, column)) for column in zip(*cells, strict=True)]
    sizes[0] = max(8, min(sizes[0], width - sum(sizes[1:]) - 2 * (len(sizes) - 1)))
    lines = []
    for row in cells:
        row[0] = plain(row[0], sizes[0]) if row[0] else ""
        padded = [f"{cell:<{size}}" for cell, size in zip(row, sizes, strict=True)]
        lines.append("  ".join(_coloured(cell) if colour else cell for cell in padded).rstrip())
    return lines


def blocks(
    names: Sequence[str], columns: Iterable[Sequence[str]], width: int, colour: bool = False
) -> Iterator[str]:
    """Blocks of columns, an empty line before each; names and the first column are in all."""
    base, *others = columns
    first = max(map(len, names)) + 2 + max(map(len, base))
    block: list[Sequence[str]] = [base]
    used = first
    for column in others:
        size = 2 + max(map(len, column))
        if used + size > width and len(block) > 1:
            yield from ["", *grid(zip(names, *block, strict=True), width, colour)]
            block, used = [base], first
        block.append(column)
        used += size
    yield from ["", *grid(zip(names, *block, strict=True), width, colour)]


def _coloured(cell: str) -> str:
    """The verdict or direction that ends the cell, in its colour; a ? stays uncoloured."""
    word = cell.split()[-1] if cell.split() else ""
    code = COLOURS.get(word)
    if code is None:
        return cell
    before, _, after = cell.rpartition(word)
    return f"{before}\x1b[{code}m{word}\x1b[0m{after}"
