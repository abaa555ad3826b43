# SPDX-License-Identifier: GPL-2.0-or-later
"""Computes figures from the sampled counters. None means not available, never zero."""

from dataclasses import dataclass

import numpy as np

from analysis.reading.latency_log import Floats
from analysis.reading.load import Run
from contract.run_files import MEMINFO, PRESSURE

PAGES_PER_MIB = 256.0  # pages of 4,096 bytes
KIB_PER_MIB = 1024.0
PRESSURE_SPAN_S = 10.0  # systemd-oomd and `avg10` of /proc/pressure use it, too


@dataclass(frozen=True)
class Counter:
    """A counter that only grows, and how many of its units make one MiB."""

    table: str
    name: str
    per_mib: float


SWAP_IN = Counter("vmstat", "pswpin", PAGES_PER_MIB)
SWAP_OUT = Counter("vmstat", "pswpout", PAGES_PER_MIB)
ZSWAP_IN = Counter("vmstat", "zswpin", PAGES_PER_MIB)
ZSWAP_OUT = Counter("vmstat", "zswpout", PAGES_PER_MIB)
ZSWAP_BACK = Counter("vmstat", "zswpwb", PAGES_PER_MIB)
PAGE_IN = Counter("vmstat", "pgpgin", KIB_PER_MIB)
PAGE_OUT = Counter("vmstat", "pgpgout", KIB_PER_MIB)


def moved_mib(run: Run, counter: Counter) -> float | None:
    """MiB from the first sample to the last; also None if the counter ever went back."""
    column = run.column(counter.table, counter.name)
    if column is None or len(column[1]) < 2 or np.any(np.diff(column[1]) < 0):
        return None
    return float((column[1][-1] - column[1][0]) / counter.per_mib)


def rate(run: Run, table: str, name: str, per_unit: float) -> tuple[Floats, Floats] | None:
    """Edges (elapsed s, n + 1) and rates (units per second, n) between samples.

    per_unit: counts that make a unit. A rate is NaN, and not drawn, where the counter went back.
    """
    column = run.column(table, name)
    return None if column is None else grown(*column, per_unit)


def grown(elapsed: Floats, level: Floats, per_unit: float) -> tuple[Floats, Floats] | None:
    """Edges (s) and rates (units per second), see `rate`; None with fewer than two moments."""
    keep = np.concatenate(([True], np.diff(elapsed) > 0))
    stamps, values = elapsed[keep], level[keep]
    if len(stamps) < 2:
        return None
    speed = np.diff(values) / np.diff(stamps) / per_unit
    return stamps, np.where(speed < 0, np.nan, speed)


def peak(run: Run, table: str, name: str) -> float | None:
    """The highest sample of a gauge, in the file's unit; None: not available."""
    column = run.column(table, name)
    return None if column is None else float(column[1].max())


def least_share(run: Run, name: str, total: str) -> float | None:
    """The lowest sample of a row of /proc/meminfo, in per cent of another row; None: unknown."""
    part, whole = run.column(MEMINFO, name), peak(run, MEMINFO, total)
    return 100 * float(part[1].min()) / whole if part is not None and whole else None


def worst_pressure(run: Run) -> float | None:
    """The largest share (per cent) of PRESSURE_SPAN_S in which all programs waited for memory.

    From `full` of /proc/pressure/memory; of a shorter run it is the share of the whole run. None:
    not available.
    """
    column = run.column(PRESSURE, "memory_full_us")
    if column is None or len(column[0]) < 2 or column[0][-1] <= column[0][0]:
        return None
    elapsed, waited = column[0], column[1] / 1e6
    span = min(PRESSURE_SPAN_S, float(elapsed[-1] - elapsed[0]))
    waits = np.interp(elapsed + span, elapsed, waited) - waited  # from each sample on
    return 100 * min(1.0, float(waits.max()) / span)


def worst_lateness(run: Run) -> float | None:
    """How late the latest sample of any table was, seconds; None: not available."""
    late = [seconds for name in run.tables if (seconds := peak(run, name, "late_s")) is not None]
    return max(late, default=None)
