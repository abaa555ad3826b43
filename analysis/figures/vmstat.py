# SPDX-License-Identifier: GPL-2.0-or-later
"""A figure for each counter of /proc/vmstat in a run: its growth, or the mean of a level.

Which counters are levels is taken from the kernel's source (mm/vmstat.c `vmstat_text` names the
counters in the order of include/linux/mmzone.h and vm_event_item.h), not from the values: a level
may happen to grow all through a run. Items of a zone or a node are called nr_* and are levels,
except some that only grow (mmzone.h: "page dirtyings since bootup"). All events only grow.
"""

import re
from collections.abc import Mapping, Sequence

import numpy as np

from analysis.reading.latency_log import Floats
from analysis.reading.load import Run
from contract.run_files import LATE, STAMP

TABLE = "vmstat"
NAME = re.compile(r"[a-z][a-z0-9_]{0,63}")  # as in kernels; a stranger's file may have others
MOST = 1000  # counters of a file; Linux 7.2 has about 230
MOST_VALUES = 8_000_000  # in memory at once: ten hours of all counters
DECIMALS = 3  # of a mean: rounded, a constant level has exactly its value as mean
# Called nr_*, but they only grow: NR_VMSCAN_WRITE, NR_VMSCAN_IMMEDIATE, NR_DIRTIED, NR_WRITTEN,
# NR_THROTTLED_WRITTEN (8cd7c588decf), NR_FOLL_PIN_* (1970dc6f5226) and the events NR_TLB_*.
GROWING = frozenset(
    (
        *("nr_vmscan_write", "nr_vmscan_immediate_reclaim"),
        *("nr_dirtied", "nr_written", "nr_throttled_written"),
        *("nr_foll_pin_acquired", "nr_foll_pin_released"),
        *("nr_tlb_remote_flush", "nr_tlb_remote_flush_received"),
        *("nr_tlb_local_flush_all", "nr_tlb_local_flush_one"),
    )
)
# WORKINGSET_NODES: nodes of the page cache that hold shadow entries at present (mm/workingset.c).
LEVELS = frozenset(("workingset_nodes",))


def is_level(counter: str) -> bool:
    """Whether the counter is a level (how much there is), not a sum of events."""
    return counter in LEVELS or (counter.startswith("nr_") and counter not in GROWING)


def figures(run: Run) -> dict[str, float | None]:
    """Counter -> its figure, in the kernel's unit; None: a sum of events went back.

    A counter that this kernel lacks, or that has fewer than two readable samples, is left out.
    Raises UserError if the file was changed since it was loaded.
    """
    table = run.tables.get(TABLE)
    if table is None:
        return {}
    named = [name for name in table.names if NAME.fullmatch(name) and name not in (STAMP, LATE)]
    known = named[:MOST]
    by_counter: dict[str, float | None] = {}
    at_once = max(1, MOST_VALUES // max(1, len(table.columns[STAMP])))
    for first in range(0, len(known), at_once):
        chunk = known[first : first + at_once]
        columns = table.read(chunk)
        stamps = columns[STAMP]
        whole = [name for name in chunk if np.isfinite(columns[name]).all()]
        by_counter |= figures_of(whole, stamps, columns)
        for counter in set(chunk) - set(whole):
            good = np.isfinite(columns[counter])
            by_counter |= figures_of((counter,), stamps[good], {counter: columns[counter][good]})
    return {counter: by_counter[counter] for counter in known if counter in by_counter}


def figures_of(
    counters: Sequence[str], stamps: Floats, columns: Mapping[str, Floats]
) -> dict[str, float | None]:
    """Like `figures`, from the counters' values at the stamps (s, in order)."""
    if not counters or not len(stamps) or stamps[-1] == stamps[0]:
        return {}
    values = np.array([columns[counter] for counter in counters])
    growth = values[:, -1] - values[:, 0]
    back = np.any(values[:, 1:] < values[:, :-1], axis=1)
    means = np.trapezoid(values, stamps, axis=1) / (stamps[-1] - stamps[0])
    by_counter: dict[str, float | None] = {}
    for place, counter in enumerate(counters):
        if is_level(counter):
            by_counter[counter] = round(float(means[place]), DECIMALS)
        else:
            by_counter[counter] = None if back[place] else float(growth[place])
    return by_counter
