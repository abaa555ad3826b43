# SPDX-License-Identifier: GPL-2.0-or-later
"""Was an observer itself a victim? Such a run tells of its observer as much as of its kernel.

The observers are locked in memory and run at real-time priority, so that a machine in trouble does
not trouble them: on a slow, shared, emulated machine they fault never, miss a sample in a thousand
and come 0.2 s late at the worst. Compaction of all memory can hold them up for seconds.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from analysis.reading.latency_log import number
from analysis.reading.load import Run
from analysis.reading.streams import STALL
from analysis.reading.words import plain, plural
from contract.run_files import (
    COMPLETED,
    EVIDENCE_OBSERVER,
    KERN_LOG,
    KEYS,
    RECORDER,
    SAMPLER,
    UNFINISHED,
)

LATE_S = STALL  # an observer so late could have made a stall up, or hidden one
MISSED = 0.01  # share of its samples,
MISSED_AT_LEAST = 4  # a second's worth of them
# What of the kernel's log was lost is said with the log: its figures are bounds, no stall is in it.
HARMLESS_DROPS = (KERN_LOG,)


def of_run(run: Run) -> list[str]:
    """Why this run's observers cannot be trusted, a clause each; none: they can.

    Only of a run that did not fail: how a run failed is seen from outside of it.
    """
    return list(_reasons(run)) if run.state in (COMPLETED, UNFINISHED) else []


def trusted(variants: Mapping[str, list[Run]]) -> dict[str, list[Run]]:
    """The variants with those of their runs whose observers were not disturbed."""
    return {name: [run for run in runs if not of_run(run)] for name, runs in variants.items()}


def _reasons(run: Run) -> Iterator[str]:
    reports = observers(run)
    for report in reports:
        name = plain(report.get("name"), 20)
        faults = number(report.get("major_faults")) or 0
        if faults > 0:
            yield f"{name} had {plural(int(faults), 'major fault')}"
        late = number(report.get("worst_late_s")) or 0
        # Evidence reads what others hold locks on, and stamps no line: late, it only knows less.
        stamps = report.get("name") != EVIDENCE_OBSERVER
        if stamps and late > LATE_S:
            yield f"{name} was {late:.1f} s late"
        taken, missed = (number(report.get(key)) or 0 for key in ("samples", "missed"))
        if stamps and missed > max(MISSED_AT_LEAST, MISSED * (taken + missed)):
            yield f"{name} missed {missed:,.0f} of {plural(int(taken + missed), 'sample')}"
        dropped = report.get("dropped")
        files = dropped if isinstance(dropped, dict) else {}
        lost = [file for file in files if file not in HARMLESS_DROPS]
        if lost:
            yield f"{name} dropped rows of {plain(', '.join(sorted(lost)), 60)}"
    names = [report.get("name") for report in reports]
    # The recorder lived to tell, and so did whoever else was there at the end.
    expected = [SAMPLER]
    if run.fact("evidence", "delayacct") is not None:
        expected.append(EVIDENCE_OBSERVER)
    if run.fact("keys") is not None:
        expected.append(KEYS)
    for name in expected:
        if RECORDER in names and name not in names:
            yield f"{name} ended before its time"


def observers(run: Run) -> list[dict[str, Any]]:
    """What each observer said of itself: its word in meta.json, else its event."""
    listed = run.fact("observers")
    events = [entry for entry in run.events if entry.get("event") == "observer"]
    reports = listed if isinstance(listed, list) and listed else events
    return [entry for entry in reports if isinstance(entry, dict)]
