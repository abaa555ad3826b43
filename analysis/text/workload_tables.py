# SPDX-License-Identifier: GPL-2.0-or-later
"""A workload's tables as text: in their own form, or with a row for each variant."""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from textwrap import wrap

from analysis.figures import observer_faults
from analysis.figures.metrics import metrics_of
from analysis.figures.workload_tables import Means, keys, of_run, over_runs
from analysis.reading.load import Campaign, Run, first_described
from analysis.reading.words import plural, short_label
from analysis.text.layout import blocks, grid, paragraph
from analysis.verdicts.compared import Compared
from analysis.verdicts.sentences import times
from contract.workload import Description, FigureTable, TableRow

NONE = "-"
LABEL = 26  # columns of a variant's name
SIGNIFICANT, MOST_DECIMALS = 3, 6  # digits of a figure whose workload sets none
TOO_LONG = 1e9
CHANGE = "(x): the ratio of the mean to {}'s."
MEANS = "means of the runs that ended"
FAILED_TOO = ", and of those that failed"
FEWER = "(n): the mean of n runs only."
OF_FEWER = re.compile(r" \(\d+\)(?: |$)")
RATIO = re.compile(r"x(?: worse| better)?\)$")


@dataclass(frozen=True)
class ByVariant:
    """A table transposed: a row for each variant, a column for each cell that is not empty.

    `of`: what the figures are; `groups`: the title of the workload's row above its first cell, ""
    above its other cells; `heads`: the titles of the workload's columns; `names`: both titles;
    `change`: what the ratios in the cells are, "" without ratios.
    """

    title: str
    of: str
    groups: list[str]
    heads: list[str]
    names: list[str]
    rows: list[list[str]]  # the label, the runs, the cells
    change: str

    @property
    def fewer(self) -> bool:
        """Whether a cell is the mean of fewer runs than its row has."""
        return any(_is_of_fewer(cell) for row in self.rows for cell in row[2:])


@dataclass(frozen=True)
class _Place:
    """A cell of a table: the titles of its row and column; `first`: whether it begins its row.

    `better`: the better direction of its column, "" if there is none.
    """

    title: str
    head: str
    key: str
    first: bool
    better: str


def run_lines(run: Run, width: int) -> Iterator[str]:
    """The tables of one run, with an empty line before each."""
    figures = of_run(run, run.workload.tables)
    for table in run.workload.tables:
        digits = _digits(run.workload, table, [figures])
        cells = {key: _figure(figures[key], digits[key]) for key in keys([table]) if key in figures}
        yield from ["", *_form(table, cells, width)]


def campaign_lines(
    campaign: Campaign, variants: Sequence[str], labels: Mapping[str, str], width: int
) -> Iterator[str]:
    """The tables of these variants: means over a variant's runs, with an empty line after each."""
    trusted = observer_faults.trusted(campaign.variants())
    for variant in variants:
        runs = trusted.get(variant, [])
        workload = first_described(campaign.variants()[variant]).workload
        tables = over_runs(runs, workload.tables)
        for table, means in zip(workload.tables, tables, strict=True):
            cells = _cells(means, _digits(workload, table, [means.values]))
            of = f"{short_label(labels[variant], LABEL)}, mean of {plural(means.runs, 'run')}"
            yield from [*_form(table, cells, width, of + FAILED_TOO * table.of_failed), ""]


def variant_lines(compared: Compared, variants: Sequence[str], width: int) -> Iterator[str]:
    """Each table with a row for each variant, or with a column if the rows would be too wide."""
    for table in by_variant(compared, variants):
        yield from ["", *paragraph(f"{table.title} ({table.of}):")]
        rows = [["", "", *table.groups], ["variant", "runs", *table.heads], *table.rows]
        if not any(table.groups):
            del rows[0]
        aligned = _aligned(rows, 2)
        if _width(aligned) <= width:
            yield from ["", *grid(aligned, width, least=0)]
        else:
            yield from blocks(["", "runs", *table.names], table.rows, width)
        if table.change:
            yield from wrap(table.change, width)
        if table.fewer:
            yield FEWER


def by_variant(compared: Compared, variants: Sequence[str]) -> list[ByVariant]:
    """The tables of the workload that is compared, transposed."""
    workload = compared.workload
    if not workload.tables:
        return []
    runs = observer_faults.trusted(compared.campaign.variants())
    means_of = {variant: over_runs(runs.get(variant, []), workload.tables) for variant in variants}
    tables = []
    for at, table in enumerate(workload.tables):
        means = {variant: means_of[variant][at] for variant in variants}
        digits = _digits(workload, table, [variant.values for variant in means.values()])
        base = means.get(compared.baseline, Means(0, {})) if len(variants) > 1 else Means(0, {})
        places = [place for row in table.rows for place in _places(table, row)]
        rows = []
        for variant in variants:
            cells = _cells(means[variant], digits)
            values = [
                cells[place.key] + _change(place, means[variant], base)
                if place.key in cells
                else NONE
                for place in places
            ]
            rows.append(
                [short_label(compared.labels[variant], LABEL), str(means[variant].runs), *values]
            )
        has_ratio = any(RATIO.search(cell) for row in rows for cell in row[2:])
        tables.append(
            ByVariant(
                table.title,
                MEANS + FAILED_TOO * table.of_failed,
                [place.title if place.first else "" for place in places],
                [place.head for place in places],
                [", ".join(filter(None, (place.title, place.head))) for place in places],
                rows,
                CHANGE.format(short_label(compared.labels[compared.baseline], LABEL))
                if has_ratio
                else "",
            )
        )
    return tables


def _digits(
    workload: Description, table: FigureTable, values: Sequence[Mapping[str, float]]
) -> dict[str, int]:
    """Decimals by key: the workload's own, else the most that other keys of the column have."""
    fixed = {metric.key: metric.digits for metric in metrics_of(workload)}
    digits: dict[str, int] = {}
    for column in zip(*(row.figures for row in table.rows), strict=True):
        there = [
            figures[key]
            for figures in values
            for key in column
            if key in figures and key not in fixed
        ]
        decimals = [fixed[key] for key in column if key in fixed] or map(_decimals, there)
        digits |= dict.fromkeys(column, max(decimals, default=0))
    return digits | fixed


def _decimals(value: float) -> int:
    """0 for a whole number, else as many decimals as show SIGNIFICANT digits."""
    if value == int(value):
        return 0
    return max(0, min(MOST_DECIMALS, SIGNIFICANT - 1 - math.floor(math.log10(abs(value)))))


def _figure(value: float, digits: int) -> str:
    return f"{value:,.{digits}f}" if abs(value) < TOO_LONG else f"{value:.3g}"


def _cells(means: Means, digits: Mapping[str, int]) -> dict[str, str]:
    """The cells by key; with the number of runs if it is smaller than the table's."""
    cells = {}
    for key, mean in means.of.items():
        fewer = f" ({mean.runs})" if mean.runs < means.runs else ""
        cells[key] = _figure(mean.value, digits[key]) + fewer
    return cells


def _form(table: FigureTable, cells: Mapping[str, str], width: int, of: str = "") -> Iterator[str]:
    """The table as its workload lays it out; columns that do not fit stand below the others."""
    yield from paragraph(f"{table.title} ({of}):" if of else f"{table.title}:")
    rows = [
        [row.title, *(cells.get(key, NONE) if key else "" for key in row.figures)]
        for row in table.rows
    ]
    rows = _aligned([["", *table.columns], *rows], 1)
    sizes = [2 + max(map(len, column)) for column in zip(*rows, strict=True)]
    first = min(sizes[0], width // 2)
    begin = 1
    while begin < len(sizes):
        end = begin + 1
        while end < len(sizes) and first + sum(sizes[begin : end + 1]) <= width:
            end += 1
        yield from grid([[row[0], *row[begin:end]] for row in rows], width, least=0)
        begin = end
    if any(_is_of_fewer(cells.get(key, "")) for row in table.rows for key in row.figures):
        yield FEWER


def _is_of_fewer(cell: str) -> bool:
    return OF_FEWER.search(cell) is not None


def _change(place: _Place, means: Means, base: Means) -> str:
    """` (1.26x worse)`: the ratio to the baseline's mean, and its direction."""
    value, of = means.of[place.key].value, base.of.get(place.key)
    if not place.better or of is None or of.value <= 0 or means is base:
        return ""
    ratio = times(value / of.value)
    if ratio == "1.00":
        return f" ({ratio}x)"
    word = "better" if (value < of.value) == (place.better == "lower") else "worse"
    return f" ({ratio}x {word})"


def _places(table: FigureTable, row: TableRow) -> list[_Place]:
    """The row's cells that are not empty."""
    better = table.better or [""] * len(table.columns)
    there = [cell for cell in zip(table.columns, row.figures, better, strict=True) if cell[1]]
    return [_Place(row.title, head, key, at == 0, way) for at, (head, key, way) in enumerate(there)]


def _aligned(rows: list[list[str]], left: int) -> list[list[str]]:
    """The rows with all but the first `left` columns aligned to the right."""
    sizes = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        [
            cell if place < left else f"{cell:>{size}}"
            for place, (cell, size) in enumerate(zip(row, sizes, strict=True))
        ]
        for row in rows
    ]


def _width(rows: list[list[str]]) -> int:
    sizes = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return sum(sizes) + 2 * (len(sizes) - 1)
