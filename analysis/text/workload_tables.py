# SPDX-License-Identifier: GPL-2.0-or-later
"""A workload's tables in letters: in their own form, or a row for each variant."""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from textwrap import wrap

from analysis.figures import observer_faults
from analysis.figures.metrics import metrics_of
from analysis.figures.workload_tables import Means, keys, of_run, over_runs
from analysis.reading.load import Campaign, Run, first_described
from analysis.reading.words import plain, plural
from analysis.text.layout import blocks, grid, paragraph
from analysis.verdicts.compared import Compared
from analysis.verdicts.sentences import times
from contract.workload import Description, FigureTable, TableRow

NONE = "-"
LABEL = 26  # columns of a variant's name
SIGNIFICANT, MOST_DECIMALS = 3, 6  # digits of a figure that nothing is said of
TOO_LONG = 1e9
CHANGE = "(x): the ratio of the mean to {}'s."
MEANS = "means of the runs that ended"
FAILED_TOO = ", and of those that failed"
FEWER = "(n): the mean of n runs only."
OF_FEWER = re.compile(r" \(\d+\)(?: |$)")
RATIO = re.compile(r"x(?: worse| better)?\)$")


@dataclass(frozen=True)
class ByVariant:
    """One table turned: a row for each variant, a column for each cell that is not empty.

    `of`: what its figures are; `groups`: the title of the table's row over the first of its cells,
    "" over the others; `heads`: the table's columns; `names`: both; `change`: what the ratios in
    the cells are, "" of none.
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
        """Whether a cell has fewer runs than its row."""
        return any(_is_of_fewer(cell) for row in self.rows for cell in row[2:])


@dataclass(frozen=True)
class _Place:
    """A cell of a table: the titles of its row and column; `first`: of those in its row.

    `better`: the direction of its column, "" of none.
    """

    title: str
    head: str
    key: str
    first: bool
    better: str


def run_lines(run: Run, width: int) -> Iterator[str]:
    """The tables of one run, an empty line before each."""
    found = of_run(run, run.workload.tables)
    for table in run.workload.tables:
        digits = _digits(run.workload, table, [found])
        cells = {key: _figure(found[key], digits[key]) for key in keys([table]) if key in found}
        yield from ["", *_form(table, cells, width)]


def campaign_lines(
    campaign: Campaign, variants: Sequence[str], labels: Mapping[str, str], width: int
) -> Iterator[str]:
    """The tables of each of these variants: means over its runs, an empty line after each."""
    trusted = observer_faults.trusted(campaign.variants())
    for variant in variants:
        runs = trusted.get(variant, [])
        workload = first_described(campaign.variants()[variant]).workload
        each = over_runs(runs, workload.tables)
        for table, means in zip(workload.tables, each, strict=True):
            cells = _cells(means, _digits(workload, table, [means.values]))
            of = f"{plain(labels[variant], LABEL)}, mean of {plural(means.runs, 'run')}"
            yield from [*_form(table, cells, width, of + FAILED_TOO * table.of_failed), ""]


def variant_lines(compared: Compared, variants: Sequence[str], width: int) -> Iterator[str]:
    """Each table with a row for each variant, or a column where that is too wide."""
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
    """The tables of the workload that is compared."""
    workload = compared.workload
    if not workload.tables:
        return []
    runs = observer_faults.trusted(compared.campaign.variants())
    each = {one: over_runs(runs.get(one, []), workload.tables) for one in variants}
    found = []
    for at, table in enumerate(workload.tables):
        means = {one: each[one][at] for one in variants}
        digits = _digits(workload, table, [one.values for one in means.values()])
        base = means.get(compared.baseline, Means(0, {})) if len(variants) > 1 else Means(0, {})
        places = [place for row in table.rows for place in _places(table, row)]
        rows = []
        for one in variants:
            cells = _cells(means[one], digits)
            values = [
                cells[place.key] + _change(place, means[one], base) if place.key in cells else NONE
                for place in places
            ]
            rows.append([plain(compared.labels[one], LABEL), str(means[one].runs), *values])
        told = any(RATIO.search(cell) for row in rows for cell in row[2:])
        found.append(
            ByVariant(
                table.title,
                MEANS + FAILED_TOO * table.of_failed,
                [place.title if place.first else "" for place in places],
                [place.head for place in places],
                [", ".join(filter(None, (place.title, place.head))) for place in places],
                rows,
                CHANGE.format(plain(compared.labels[compared.baseline], LABEL)) if told else "",
            )
        )
    return found


def _digits(
    workload: Description, table: FigureTable, values: Sequence[Mapping[str, float]]
) -> dict[str, int]:
    """Decimals by key: where the workload says none, those that others of the column have."""
    told = {metric.key: metric.digits for metric in metrics_of(workload)}
    found: dict[str, int] = {}
    for column in zip(*(row.figures for row in table.rows), strict=True):
        there = [one[key] for one in values for key in column if key in one and key not in told]
        said = [told[key] for key in column if key in told] or map(_decimals, there)
        found |= dict.fromkeys(column, max(said, default=0))
    return found | told


def _decimals(value: float) -> int:
    """None of a whole number, else as many as show so many digits."""
    if value == int(value):
        return 0
    return max(0, min(MOST_DECIMALS, SIGNIFICANT - 1 - math.floor(math.log10(abs(value)))))


def _figure(value: float, digits: int) -> str:
    return f"{value:,.{digits}f}" if abs(value) < TOO_LONG else f"{value:.3g}"


def _cells(means: Means, digits: Mapping[str, int]) -> dict[str, str]:
    """The cells by key; of fewer runs than the others with their number."""
    found = {}
    for key, mean in means.of.items():
        fewer = f" ({mean.runs})" if mean.runs < means.runs else ""
        found[key] = _figure(mean.value, digits[key]) + fewer
    return found


def _form(table: FigureTable, cells: Mapping[str, str], width: int, of: str = "") -> Iterator[str]:
    """The table as its workload has it; columns that do not fit stand below the others."""
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
    """` (1.26x worse)`: the ratio to the baseline's mean, and which way that is."""
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
    """All but the first columns with their ends under each other."""
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
