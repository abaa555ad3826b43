# SPDX-License-Identifier: GPL-2.0-or-later
"""A run's tables of counters with those columns only that figures and pictures use."""

from analysis.reading.counter_tables import FREQUENT
from analysis.reading.load import Run

# What the figures and the pictures show beside FREQUENT; other columns of these files are left out
# of a narrow bundle.
NARROW = FREQUENT | {
    *("nr_free_pages", "nr_dirty", "pgmajfault", "pgscan_direct", "pgscan_kswapd", "oom_kill"),
    *("MemAvailable", "Dirty", "Writeback", "disk_io_ms", "swap_io_ms"),
}


def drawn(run: Run) -> frozenset[str]:
    """The columns of tables that the run's workload lets be drawn."""
    return frozenset(curve.column for panel in run.workload.panels for curve in panel.curves)


def narrowed(raw: bytes, more: frozenset[str] = frozenset()) -> bytes:
    """A table with the columns of NARROW and more; its stamps, its rows and their damage stay."""
    header, newline, body = raw.partition(b"\n")
    names = header.split(b"\t")
    kept = NARROW | more
    keep = [i for i, name in enumerate(names) if name.decode("ascii", "replace") in kept]
    rows = [b"\t".join(names[i] for i in keep)]
    for row in body.split(b"\n"):
        cells = row.split(b"\t")
        # A row of another length stays one: the reader leaves it out, and says so.
        rows.append(b"\t".join(cells[i] for i in keep) if len(cells) == len(names) else row[:1])
    return b"\n".join(rows) if newline else raw
