# SPDX-License-Identifier: GPL-2.0-or-later
"""Reduces a run's tables of counters to the columns that figures and pictures use."""

from analysis.reading.counter_tables import FREQUENT
from analysis.reading.load import Run

# The columns that figures and pictures use besides FREQUENT; a narrow bundle omits all other
# columns of these files.
NARROW = FREQUENT | {
    *("nr_free_pages", "nr_dirty", "pgmajfault", "pgscan_direct", "pgscan_kswapd", "oom_kill"),
    *("MemAvailable", "Dirty", "Writeback", "disk_io_ms", "swap_io_ms"),
}


def drawn(run: Run) -> frozenset[str]:
    """The table columns in the diagrams of the run's workload."""
    return frozenset(curve.column for panel in run.workload.panels for curve in panel.curves)


def narrowed(raw: bytes, more: frozenset[str] = frozenset()) -> bytes:
    """A table with only the columns of NARROW and more; keeps time stamps and damaged rows."""
    header, newline, body = raw.partition(b"\n")
    names = header.split(b"\t")
    kept = NARROW | more
    keep = [i for i, name in enumerate(names) if name.decode("ascii", "replace") in kept]
    rows = [b"\t".join(names[i] for i in keep)]
    for row in body.split(b"\n"):
        cells = row.split(b"\t")
        # A row with a wrong number of cells stays wrong: the reader skips and reports it.
        rows.append(b"\t".join(cells[i] for i in keep) if len(cells) == len(names) else row[:1])
    return b"\n".join(rows) if newline else raw
