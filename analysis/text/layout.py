# SPDX-License-Identifier: GPL-2.0-or-later
"""How texts are laid out: paragraphs, entries, and tables."""

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from textwrap import wrap

from analysis.reading.words import safe_line

WIDTH = 75  # columns of a text that goes into a mail
RED, GREEN, CYAN = 31, 32, 36
COLOURS = {
    "worse": RED,
    "regressed": RED,
    "better": GREEN,
    "improved": GREEN,
    "equivalent": CYAN,
}


def wants_colour(asked: str) -> bool:
    """Whether standard output gets colours; `asked`: --colour, which is auto, always or never."""
    is_auto = asked == "auto" and sys.stdout.isatty() and "NO_COLOR" not in os.environ
    return asked == "always" or is_auto


def paragraph(text: str, indent: str = "") -> list[str]:
    """The text in lines of at most WIDTH columns; lines after the first are indented."""
    return wrap(text, WIDTH, subsequent_indent=indent, break_on_hyphens=False) or [""]


def titled(text: str) -> str:
    """A heading, underlined."""
    return f"{text}\n{'-' * len(text)}\n"


def indented(text: str, columns: int) -> list[str]:
    """The text in lines of at most WIDTH columns, indented; lines after the first by two more."""
    lines = wrap(text, WIDTH - columns, subsequent_indent="  ", break_on_hyphens=False)
    return [" " * columns + line for line in lines]


def entry(name: str, text: str) -> list[str]:
    """'name         text', wrapped under the text."""
    return paragraph(f"{name:<12} {text}", " " * 13)


def grid(
    rows: Iterable[Sequence[str]],
    width: int,
    *,
    colour: bool = False,
    whole_names: bool = False,
    least: int = 8,
) -> list[str]:
    """A table as lines; if it is wider than `width`, the first column shrinks.

    Its cells are then cut, to no less than 8 columns, or with `whole_names` stand on a line of
    their own. The column is never narrower than `least`.
    """
    cells = [list(row) for row in rows]
    sizes = [max(map(len, column)) for column in zip(*cells, strict=True)]
    room = width - sum(sizes[1:]) - 2 * (len(sizes) - 1)
    sizes[0] = max(least, min(sizes[0], room if whole_names else max(8, room)))
    lines = []
    for row in cells:
        if whole_names and len(row[0]) > sizes[0]:
            lines.append(row[0])
            row[0] = ""
        row[0] = safe_line(row[0], sizes[0]) if row[0] else ""
        padded = [f"{cell:<{size}}" for cell, size in zip(row, sizes, strict=True)]
        lines.append("  ".join(_coloured(cell) if colour else cell for cell in padded).rstrip())
    return lines


def blocks(
    names: Sequence[str], columns: Iterable[Sequence[str]], width: int, colour: bool = False
) -> Iterator[str]:
    """Blocks of columns, an empty line before each; all have the names and the first column."""
    base, *others = columns
    first = max(map(len, names)) + 2 + max(map(len, base))
    block: list[Sequence[str]] = [base]
    used = first
    for column in others:
        size = 2 + max(map(len, column))
        if used + size > width and len(block) > 1:
            yield from ["", *grid(zip(names, *block, strict=True), width, colour=colour)]
            block, used = [base], first
        block.append(column)
        used += size
    yield from ["", *grid(zip(names, *block, strict=True), width, colour=colour)]


def _coloured(cell: str) -> str:
    """The cell with the verdict or direction at its end in colour; none for a word with a ?."""
    word = cell.split()[-1] if cell.split() else ""
    code = COLOURS.get(word)
    if code is None:
        return cell
    before, _, after = cell.rpartition(word)
    return f"{before}\x1b[{code}m{word}\x1b[0m{after}"
