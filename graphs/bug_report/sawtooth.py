# SPDX-License-Identifier: GPL-2.0-or-later
"""The sawtooth of one stream in plain characters, for a mail: gap (s) against elapsed time (s).

A tooth rises for as long as the silence lasts, to the height of the gap, and falls when the line
comes. The silence that no line ended is drawn with another character.
"""

import math

import numpy as np

from analysis.reading.latency_log import Floats

TOOTH, OPEN = "#", "?"
PARTS = ((0.75, ""), (0.4, ":"), (0.06, "."))  # of the topmost cell of a column
LEFT = 7  # columns for the scale of gaps
SMALLEST = 0.1  # s: the scale of gaps reaches at least this high


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

    `elapsed` and `gap`: of each line that was printed; `last`, `open_gap`: where the silence at
    the end began and how long it was.
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
    """For each column the height of the highest tooth within it."""
    found = np.zeros(columns)
    edges = np.linspace(0, across, columns + 1)
    long = end - begin > 0
    for start, over in zip(begin[long], end[long], strict=True):
        first = max(0, min(columns - 1, int(start / across * columns)))
        final = max(first, min(columns - 1, math.ceil(over / across * columns) - 1))
        here = slice(first, final + 1)
        reached = np.minimum(edges[first + 1 : final + 2], over) - start
        found[here] = np.maximum(found[here], reached)
    return found


def _cell(closed: float, opened: float) -> str:
    """What stands in one cell that the teeth fill to these shares."""
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
    """A round distance between ticks, so that at most so many fit."""
    rough = limit / max(1.0, ticks)
    power = 10.0 ** math.floor(math.log10(rough))
    return next(m * power for m in (1, 2, 5, 10) if m * power >= rough * 0.999)


def _decimals(step: float) -> int:
    return max(0, -math.floor(math.log10(step * 1.001)))


def round_up(value: float) -> float:
    """The least round number that is no smaller: a scale that all pictures can share."""
    if value <= SMALLEST:
        return SMALLEST
    power = 10.0 ** math.floor(math.log10(value))
    steps = (1, 1.5, 2, 3, 4, 5, 6, 8, 10)
    return float(next(m * power for m in steps if m * power >= value * 0.999999))
