# SPDX-License-Identifier: GPL-2.0-or-later
"""Differences of kernel counters, in a bug report of 75 columns."""

from collections.abc import Iterator

from analysis.text import vmstat
from analysis.text.layout import WIDTH, grid, paragraph
from analysis.verdicts.compared import Compared

ROWS = 8  # rows per variant
ALL_ROWS = 24  # rows of all variants together
COLUMNS = 4  # counter, both ranges, ratio


def section(compared: Compared, shown: list[str]) -> Iterator[str]:
    """The separate counters that differ most; nothing without counters or a second shown variant.

    `shown`: the variants in the report, including the baseline.
    """
    others = [one for one in shown if one != compared.baseline]
    if not compared.counters.figures or not others:
        return
    rows = vmstat.rows_each(len(others), ALL_ROWS, ROWS)
    for variant in others:
        first = next(vmstat.sentences(compared, variant))
        yield from paragraph(first, "  ")
        heads, *table = vmstat.table_rows(compared, variant)
        apart = sum(one.separate for one in compared.counters.differences[variant].notable)
        if apart:
            shown_rows = [heads, *table[: min(rows, apart)]]
            yield from ["", *grid([row[:COLUMNS] for row in shown_rows], WIDTH, whole_names=True)]
        yield ""
    yield from paragraph(
        "Of a run: what each counter of /proc/vmstat grew by, of a level its mean. Separate: no "
        "run of one lies within the range of the other's; the largest ratios are shown. Counters "
        "move together: where chance separates one, it may separate many at once. Exploratory: "
        "none of this is a verdict. Every counter is in compare.csv (family vmstat)."
    )
