# SPDX-License-Identifier: GPL-2.0-or-later
"""Differences of kernel counters on the page: sentences and a table per variant."""

from dataclasses import dataclass

from analysis.text import vmstat
from analysis.verdicts.compared import Compared

OPEN = 3  # up to so many variants the tables are open


@dataclass(frozen=True)
class CounterTable:
    """A variant's counters compared with the baseline's; `rows`: headings first, or empty."""

    title: str
    sentences: list[str]  # the findings; then what was not compared
    rows: list[list[str]]


def counter_tables(compared: Compared) -> list[CounterTable]:
    """A table for each variant except the baseline; [] if no run has counters."""
    if not compared.counters.figures:
        return []
    tables = []
    for variant in compared.variants[1:]:
        rows = vmstat.table_rows(compared, variant)[: 1 + vmstat.ROWS]
        title = f"{compared.labels[variant]} against {compared.labels[compared.baseline]}"
        sentences = list(vmstat.sentences(compared, variant))
        tables.append(CounterTable(title, sentences, rows if len(rows) > 1 else []))
    return tables
