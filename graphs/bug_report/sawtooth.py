# SPDX-License-Identifier: GPL-2.0-or-later
"""The sawtooth of a stream in plain characters, for a mail: gap (s) against elapsed time (s).

A tooth rises during a stall, to the height of the gap, and falls when the next line comes. A stall
that no line ended is drawn with another character.
"""

import math

import numpy as np

from analysis.reading.latency_log import Floats

TOOTH, OPEN = "#", "?"
PARTS = (
    (0.75, ""),
    (0.4, ":"),
    (0.06, "."),
)  # filled share of a column's topmost cell -> its character
LEFT = 7  # columns for the scale of gaps
SMALLEST = 0.1  # s, minimum of the scale of gaps


def sawtooth(
    elapsed: Floats,
    gap: Floats,
    *,
    last: float,
    open_gap: float,
    across: float,
    up: float,
    width: int = 75,
    height: int = 10,
) -> list[str]:
    """Lines of at most `width` columns; the scales reach to `across` and `up` seconds.

    `elapsed` and `gap`: of each printed line, in seconds; `last`, `open_gap`: start and length of
    the silence at the end, in seconds.
    """
    columns = width - LEFT
    across, up = max(across, SMALLEST), max(up, SMALLEST)
    closed = _heights(elapsed - gap, elapsed, columns, across)
    begin, end = np.array([last]), np.array([last + open_gap])
    opened = _heights(begin, end, columns, across)
    step = _step(up, height / 2.5)
    lines = []
    for row in reversed(range(height)):
        low, high = up * row / height, up * (row + 1) / height
        tick = step * math.ceil(low / step - 1e-9)
        label = f"{tick:{LEFT - 2}.{_decimals(step)}f}" if tick < high - 1e-9 else " " * (LEFT - 2)
        cells = (
            _cell((a - low) / (high - low), (b - low) / (high - low))
            for a, b in zip(closed, opened, strict=True)
        )
        lines.append(f"{label} |{''.join(cells)}".rstrip())
    return [*lines, *_axis(columns, across)]


def _heights(begin: Floats, end: Floats, columns: int, across: float) -> Floats:
    """The height of the highest tooth in each column, in seconds."""
    heights = np.zeros(columns)
    edges = np.linspace(0, across, columns + 1)
    long = end - begin > 0
    for start, over in zip(begin[long], end[long], strict=True):
        first = max(0, min(columns - 1, int(start / across * columns)))
        final = max(first, min(columns - 1, math.ceil(over / across * columns) - 1))
        here = slice(first, final + 1)
        reached = np.minimum(edges[first + 1 : final + 2], over) - start
        heights[here] = np.maximum(heights[here], reached)
    return heights


def _cell(closed: float, opened: float) -> str:
    """The character of a cell that the teeth fill to these shares (0 to 1)."""
    share, full = (opened, OPEN) if opened > closed else (closed, TOOTH)
    for least, mark in PARTS:
        if share >= least:
            return mark or full
    return " "


def _axis(columns: int, across: float) -> list[str]:
    step = _step(across, columns / 11)
    marks, words = ["-"] * columns, [" "] * (columns + LEFT)
    for index in range(int(across / step + 1e-9) + 1):
        at = min(columns - 1, round(index * step / across * columns))
        marks[at] = "+"
        word = f"{index * step:.{_decimals(step)}f}"
        begin = max(0, min(len(words) - len(word), LEFT + at - len(word) // 2))
        words[begin : begin + len(word)] = word
    return [f"{'':{LEFT - 2}} +{''.join(marks)}", "".join(words).rstrip()]


def _step(limit: float, ticks: float) -> float:
    """A round distance between ticks; at most `ticks` of them fit below the limit."""
    rough = limit / max(1.0, ticks)
    power = 10.0 ** math.floor(math.log10(rough))
    return next(m * power for m in (1, 2, 5, 10) if m * power >= rough * 0.999)


def _decimals(step: float) -> int:
    return max(0, -math.floor(math.log10(step * 1.001)))


def round_up(value: float) -> float:
    """The smallest round number of at least value, as the limit of a scale; in value's unit."""
    if value <= SMALLEST:
        return SMALLEST
    power = 10.0 ** math.floor(math.log10(value))
    steps = (1, 1.5, 2, 3, 4, 5, 6, 8, 10)
    return float(next(m * power for m in steps if m * power >= value * 0.999999))
