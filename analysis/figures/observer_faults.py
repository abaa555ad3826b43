# SPDX-License-Identifier: GPL-2.0-or-later
"""Finds runs whose observers were disturbed: their figures depend on the observer, too.

The observers are locked in memory and run at real-time priority, so that memory pressure does not
disturb them: on a slow, shared, emulated machine they have no major faults, miss a sample in a
thousand, and are at most 0.2 s late. Compaction of all memory can delay them for seconds.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from analysis.reading.latency_log import number
from analysis.reading.load import Run
from analysis.reading.streams import STALL
from analysis.reading.words import plural, safe_line
from contract.run_files import (
    COMPLETED,
    EVIDENCE_OBSERVER,
    KERN_LOG,
    KEYS,
    RECORDER,
    SAMPLER,
    UNFINISHED,
)

LATE_S = STALL  # s; an observer this late could have invented or hidden a stall
MISSED = 0.01  # share (0 to 1) of its samples,
MISSED_AT_LEAST = 4  # and at least the samples of a second
# Lost lines of the kernel's log are reported with the log: its counts are then lower bounds.
HARMLESS_DROPS = (KERN_LOG,)


def of_run(run: Run) -> list[str]:
    """Why this run's observers cannot be trusted, a clause for each reason; empty: they can.

    Always empty for a run that failed: its state is determined from outside.
    """
    return list(_reasons(run)) if run.state in (COMPLETED, UNFINISHED) else []


def trusted(variants: Mapping[str, list[Run]]) -> dict[str, list[Run]]:
    """The variants without runs whose observers were disturbed."""
    return {name: [run for run in runs if not of_run(run)] for name, runs in variants.items()}


def _reasons(run: Run) -> Iterator[str]:
    reports = observers(run)
    for report in reports:
        name = safe_line(report.get("name"), 20)
        faults = number(report.get("major_faults")) or 0
        if faults > 0:
            yield f"{name} had {plural(int(faults), 'major fault')}"
        late = number(report.get("worst_late_s")) or 0
        # The evidence observer may wait for locks, but stamps no line: if late, it only knows less.
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
            yield f"{name} dropped rows of {safe_line(', '.join(sorted(lost)), 60)}"
    names = [report.get("name") for report in reports]
    # The recorder survived, so all observers that ran to the end have reported.
    expected = [SAMPLER]
    if run.fact("evidence", "delayacct") is not None:
        expected.append(EVIDENCE_OBSERVER)
    if run.fact("keys") is not None:
        expected.append(KEYS)
    for name in expected:
        if RECORDER in names and name not in names:
            yield f"{name} ended before its time"


def observers(run: Run) -> list[dict[str, Any]]:
    """The report of each observer, from meta.json, or else from its event."""
    listed = run.fact("observers")
    events = [entry for entry in run.events if entry.get("event") == "observer"]
    reports = listed if isinstance(listed, list) and listed else events
    return [entry for entry in reports if isinstance(entry, dict)]
