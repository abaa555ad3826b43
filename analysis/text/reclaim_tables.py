# SPDX-License-Identifier: GPL-2.0-or-later
"""The table of 2010 for any kernel: how often and how long page allocator and kswapd stalled.

A line for each variant, the mean of its runs; docs/explain/causes.md explains the columns and the
kernel events that they count. A figure that a kernel cannot give is `-`, never 0.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from analysis.figures import observer_faults
from analysis.figures.metrics import whole
from analysis.reading.counter_tables import Table
from analysis.reading.evidence_tables import read_reclaimers, read_trace
from analysis.reading.load import Run
from analysis.reading.words import safe_line
from analysis.stall_causes.machine import throttles_of
from analysis.text.layout import paragraph
from errors import UserError

NEW, OLD = "mm_vmscan_throttled", "congestion_wait"
MISSING = "-"
Sums = dict[str, float]

MOST_WHO = 5  # programs that are named for a variant


@dataclass(frozen=True)
class Column:
    """A column: its head, its meaning, and its figure from a run's sums (None: not known)."""

    head: str
    words: str
    value: Callable[[Sums], float | None]


def _throttled(what: str, prefix: str = "", per: float = 1.0) -> Callable[[Sums], float | None]:
    """The sum over all reasons for throttling that this kernel counts, divided by `per`."""

    def value(sums: Sums) -> float | None:
        names = [f"{prefix}{name}_{what}" for name, _ in throttles_of(sums)]
        counts = [sums[name] for name in names if name in sums]
        return sum(counts) / per if counts else None

    return value


def _sum(name: str) -> Callable[[Sums], float | None]:
    return lambda sums: sums.get(name)


STALLS = (
    Column("pg-Stall", "times that the page allocator was throttled", _throttled("n")),
    Column("pg-Wait", "milliseconds of that", _throttled("us", per=1e3)),
    Column("pg-Rclm", "pages that direct reclaim freed", _sum("direct_reclaim_pages")),
    Column("ksd-stall", "times that kswapd was throttled", _throttled("n", "kswapd_")),
    Column("ksd-wait", "milliseconds of that", _throttled("us", "kswapd_", 1e3)),
)
RECLAIMS = (
    Column("reclaims", "direct reclaims", _sum("direct_reclaims")),
    Column("failed", "of these, freed no page", _sum("direct_reclaim_none")),
    Column("no-page", "of these, their allocation got none", _sum("reclaims_without_page")),
    Column("progress", "of those, had freed some", _sum("reclaims_progress_without_page")),
    Column(
        "ms", "milliseconds in direct reclaim", lambda sums: _in_ms(sums.get("direct_reclaim_us"))
    ),
)


def _in_ms(microseconds: float | None) -> float | None:
    return None if microseconds is None else microseconds / 1e3


def sums_of(trace: Table) -> Sums:
    """How much each counter grew in the run; without counters that could not be read."""
    sums = {}
    for name in trace.names[2:]:
        values = trace.get(name)
        if values is None:
            continue
        known = values[np.isfinite(values)]
        if len(known) >= 2 and np.all(np.diff(known) >= 0):
            sums[name] = float(known[-1] - known[0])
    return sums


def event_of(sums: Sums) -> str | None:
    """The event that counted the waits, NEW or OLD; None if the kernel has neither."""
    if any(name.startswith(("throttled_", "kswapd_throttled_")) for name in sums):
        return NEW
    old = ("congestion_wait", "wait_iff_congested", "kswapd_congestion", "kswapd_wait_iff")
    return OLD if any(name.startswith(old) for name in sums) else None


def tables(runs: dict[str, list[Run]]) -> Iterator[str]:
    """Both tables with their explanations and remarks; UserError if no run has a trace."""
    sums: dict[str, list[Sums]] = {}
    problems: list[str] = []
    left_out = []
    counting: dict[str, list[Run]] = {}
    for variant, variant_runs in runs.items():
        for run in variant_runs:
            if not whole(run) or observer_faults.of_run(run):
                left_out.append(f"{run.variant}/{run.number}")
                continue
            trace, own = run.evidence.table(read_trace)
            problems += [f"{run.variant}/{run.number}: {problem}" for problem in own]
            if trace is not None:
                counting.setdefault(variant, []).append(run)
                sums.setdefault(variant, []).append(sums_of(trace))
    if not sums:
        hint = "measured with --no-evidence, tracing was not there, or a bundle had no room for it"
        if left_out:
            hint += "; runs that were not done and those with disturbed observers are not counted: "
            hint += safe_line(", ".join(left_out), 200)
        raise UserError("no run that counts holds a trace.tsv", hint=hint)
    yield "Waits of the page allocator and of kswapd, mean of the runs"
    yield from _table(sums, STALLS)
    yield ""
    yield "Direct reclaim, mean of the runs"
    yield from _table(sums, RECLAIMS)
    if who := list(_who(counting, problems)):
        yield from ["", "Who was in direct reclaim, mean of the runs", *who]
    yield ""
    for column in (*STALLS, *RECLAIMS):
        yield f"  {column.head:<10} {column.words}"
    yield from _remarks(sums)
    if left_out:
        names = safe_line(", ".join(left_out), 2000)
        yield from paragraph(f"Left out (cut short, failed or disturbed): {names}.", "  ")
    yield from problems


def _who(runs: dict[str, list[Run]], problems: list[str]) -> Iterator[str]:
    """The programs of each variant that spent longest in direct reclaim, mean of the runs."""
    for variant, variant_runs in runs.items():
        results = [run.evidence.table(read_reclaimers) for run in variant_runs]
        problems += [problem for _, own in results for problem in own]
        known = [rows for rows, _ in results if rows is not None]
        sums: dict[str, list[float]] = {}
        for reclaimer in (row for rows in known for row in rows):
            of = sums.setdefault(safe_line(reclaimer.comm, 30), [0.0, 0.0, 0.0])
            for place, value in enumerate(
                (reclaimer.microseconds, reclaimer.reclaims, reclaimer.pages)
            ):
                of[place] += (value or 0) / len(known)
        listed = sorted(sums.items(), key=lambda item: -item[1][0])[:MOST_WHO]
        words = [
            f"{comm} {us / 1e6:.1f} s in {number:,.0f} reclaims ({pages:,.0f} pages)"
            for comm, (us, number, pages) in listed
        ]
        if words:
            yield from paragraph(f"{safe_line(variant, 40)}: {', '.join(words)}.", "  ")


def _table(found: dict[str, list[Sums]], columns: tuple[Column, ...]) -> Iterator[str]:
    wide = max([len(safe_line(name, 40)) for name in found] + [7])
    head = "  ".join(f"{column.head:>9}" for column in columns)
    yield f"  {'variant':<{wide}} {'runs':>4}  {head}"
    for variant, runs in found.items():
        cells = "  ".join(f"{_mean(runs, column):>9}" for column in columns)
        yield f"  {safe_line(variant, 40):<{wide}} {len(runs):>4}  {cells}"


def _mean(runs: list[Sums], column: Column) -> str:
    """The mean over the runs in which it is known."""
    values = [value for sums in runs if (value := column.value(sums)) is not None]
    return f"{sum(values) / len(values):,.0f}" if values else MISSING


def _remarks(found: dict[str, list[Sums]]) -> Iterator[str]:
    by_event: dict[str | None, list[str]] = {}
    for variant, runs in found.items():
        for event in {event_of(sums) for sums in runs}:
            by_event.setdefault(event, []).append(safe_line(variant, 40))
    yield ""
    for event, variants in by_event.items():
        names = ", ".join(variants)
        if event is None:
            yield from paragraph(f"{names}: waits are not available.", "  ")
        else:
            yield from paragraph(f"{names}: waits are those of {event}.", "  ")
    if NEW in by_event and OLD in by_event:
        yield from paragraph(
            "The waits of these kernels are different events: congestion_wait() (to 5.15) slept "
            "for at most 100 ms until a device was no longer congested; mm_vmscan_throttled (since "
            "5.16) sleeps for a reason of reclaim's own. Compare the columns within one kind only.",
            "  ",
        )
