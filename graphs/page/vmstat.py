# SPDX-License-Identifier: GPL-2.0-or-later
"""What the kernel did differently, as the page shows it: sentences and a table a variant."""

from dataclasses import dataclass

from analysis.text import vmstat
from analysis.verdicts.compared import Compared

OPEN = 3  # variants whose tables are all open


@dataclass(frozen=True)
class CounterTable:
    """The counters of one variant against the baseline's; `rows`: the heads first, or none."""

    title: str
    sentences: list[str]  # what was found, first; then what was not compared
    rows: list[list[str]]


def counter_tables(compared: Compared) -> list[CounterTable]:
    """One for each variant but the baseline; none if no run has counters."""
    if not compared.counters.figures:
        return []
    found = []
    for variant in compared.variants[1:]:
        rows = vmstat.table_rows(compared, variant)[: 1 + vmstat.ROWS]
        title = f"{compared.labels[variant]} against {compared.labels[compared.baseline]}"
        sentences = list(vmstat.sentences(compared, variant))
        found.append(CounterTable(title, sentences, rows if len(rows) > 1 else []))
    return found
