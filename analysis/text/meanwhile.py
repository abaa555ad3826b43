# SPDX-License-Identifier: GPL-2.0-or-later
"""meanwhile.txt: the workload's tables for every second of each variant's median run.

Each line that the run printed is a row; the rows of the workload's own table (inside, outside the
group) stand side by side. The text is as wide as its columns need.
"""

from collections.abc import Iterator, Sequence

from analysis.figures.meanwhile import Figures, lines_of
from analysis.reading.load import Campaign, Run
from analysis.reading.words import safe_line
from analysis.text.layout import titled
from analysis.verdicts.choice import in_order, medians
from contract.workload import FigureTable, TableRow

NONE = "-"


def text(campaign: Campaign) -> str:
    """The text; empty if no median run printed figures while it ran."""
    by_variant = campaign.variants()
    parts = []
    for variant, run in medians(campaign, in_order(campaign)).items():
        if body := list(run_lines(run)):
            runs = len(by_variant[variant])
            which = f", run {run.number} of {runs} (median)" if runs > 1 else ""
            lines = "\n".join(body)
            parts.append(f"{titled(f'{safe_line(run.label, 60)}{which}')}{lines}\n")
    return "\n".join(parts)


def run_lines(run: Run) -> Iterator[str]:
    """The tables of one run, with an empty line between them."""
    lines = lines_of(run)
    first = True
    for table in run.workload.tables:
        places = [(row, of) for row in table.rows if (of := _of(row, lines))]
        if not places:
            continue
        if not first:
            yield ""
        first = False
        yield f"{table.title}, a row each second:"
        yield from _side_by_side(table, places)


def _of(row: TableRow, lines: Sequence[Figures]) -> list[Figures]:
    """The lines that have a figure of this row."""
    return [line for line in lines if any(key in line for key in row.figures)]


def _side_by_side(
    table: FigureTable, places: Sequence[tuple[TableRow, list[Figures]]]
) -> Iterator[str]:
    count = max(len(of) for _, of in places)
    blocks = [["", "", *(str(number) for number in range(1, count + 1))]]
    for row, of in places:
        for at, (head, key) in enumerate(zip(table.columns, row.figures, strict=True)):
            cells = [_cell(of[n].get(key)) if n < len(of) else "" for n in range(count)]
            blocks.append([safe_line(row.title, 40) if at == 0 else "", head, *cells])
    sizes = [max(len(cell) for cell in block[1:]) for block in blocks]
    for line in range(count + 2):
        cells = [
            f"{block[line]:<{size}}" if line == 0 else f"{block[line]:>{size}}"
            for block, size in zip(blocks, sizes, strict=True)
        ]
        yield "  ".join(cells).rstrip()


def _cell(value: float | None) -> str:
    if value is None:
        return NONE
    return f"{value:,.0f}" if value >= 1000 else f"{value:.4g}"
