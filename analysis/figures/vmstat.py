# SPDX-License-Identifier: GPL-2.0-or-later
"""One figure a run of every counter of /proc/vmstat: its growth, or of a level its mean over time.

What is a level is what the kernel's source says (mm/vmstat.c `vmstat_text` names the counters in
the order of include/linux/mmzone.h and vm_event_item.h), never what the values did: a level may
happen to grow all through a run. Items of a zone or a node are called nr_* and are levels, but for
some that are only ever added to (mmzone.h: "page dirtyings since bootup"); so are all events.
"""

import re
from collections.abc import Mapping, Sequence

import numpy as np

from analysis.reading.latency_log import Floats
from analysis.reading.load import Run
from contract.run_files import LATE, STAMP

TABLE = "vmstat"
NAME = re.compile(r"[a-z][a-z0-9_]{0,63}")  # as kernels spell them; a stranger's file may not
MOST = 1000  # counters of a file; Linux 7.2 has some 230
MOST_VALUES = 8_000_000  # that are in memory at once: ten hours of every counter
DECIMALS = 3  # of a mean: one that never changed is that to the digit, whatever the stamps
# Called nr_*, and only ever added to: NR_VMSCAN_WRITE, NR_VMSCAN_IMMEDIATE, NR_DIRTIED, NR_WRITTEN,
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
# WORKINGSET_NODES: nodes of the page cache that hold shadow entries now (mm/workingset.c).
LEVELS = frozenset(("workingset_nodes",))


def is_level(counter: str) -> bool:
    """Whether the counter says how much there is, not how much there has been."""
    return counter in LEVELS or (counter.startswith("nr_") and counter not in GROWING)


def figures(run: Run) -> dict[str, float | None]:
    """Counter -> its figure, in the kernel's unit; None: it only grows, and yet it went back.

    A counter that this kernel lacks, or of which fewer than two samples could be read, is not in
    it; UserError if the file was changed since it was loaded.
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
    """Of counters with a value, (n,), at each of the stamps (n,): seconds in order."""
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
