# SPDX-License-Identifier: GPL-2.0-or-later
"""Lists what evidence of causes a run lacks, in sentences (docs/explain/causes.md)."""

from collections.abc import Iterator

from analysis.figures.observer_faults import observers
from analysis.reading.counter_tables import Table
from analysis.reading.latency_log import number
from analysis.reading.load import Run
from analysis.reading.words import first_names, plural, safe_line
from analysis.stall_causes.machine import RunCounters
from contract.run_files import EVIDENCE_OBSERVER

MISSED = 0.05  # share (0 to 1) of the evidence's samples above which a note reports it
LATE_S = 2.0  # s above which a note reports it
MORE = 1.2  # dm-crypt's busy time by the trace, divided by that of /proc/diskstats
# The event since 5.16 (8cd7c588decf), and the events that it replaced.
NEW_THROTTLE = "vmscan/mm_vmscan_throttled"
OLD_THROTTLES = {"writeback/writeback_congestion_wait", "writeback/writeback_wait_iff_congested"}
UNUSED = ("taskstats wpcopy", "taskstats irq")  # no cause is derived from these clocks
# The trace also has the time in compaction, of all tasks together.
COMPACTION_CLOCK, COMPACTION = "taskstats compact", "compaction_us"
NOT_APART = "dm-crypt is not told apart from the disk"


def notes(run: Run, machine: RunCounters) -> list[str]:
    """Sentences about missing and inexact evidence."""
    return [*_missing(run), *_disk(run, machine), *_rough(run), *run.evidence.problems]


def lost_by(names: list[str], trace: Table | None) -> list[str]:
    """The names, of those not available, whose absence makes the causes less exact.

    A kernel has either the new event of throttled reclaim or the old events.
    """
    unused = set(UNUSED)
    if NEW_THROTTLE not in names:
        unused.update(OLD_THROTTLES)
    elif not OLD_THROTTLES & set(names):
        unused.add(NEW_THROTTLE)
    if trace is not None and trace.get(COMPACTION) is not None:
        unused.add(COMPACTION_CLOCK)
    return [name for name in names if name not in unused]


def apart(run: Run, machine: RunCounters) -> bool:
    """Whether dm-crypt was measured apart from the disk in the whole run; True without dm-crypt."""
    return run.fact("crypt") == "none" or (machine.crypt_apart and trace_end(run, machine) is None)


def trace_end(run: Run, machine: RunCounters) -> float | None:
    """Elapsed s at which the trace ended, if the subjects ran longer; else None."""
    span = machine.trace_span
    ends = [stream.last + stream.open_gap for stream in run.subjects]
    return span[1] if span is not None and ends and max(ends) > span[1] + span[2] else None


def _missing(run: Run) -> Iterator[str]:
    evidence = run.evidence
    if not evidence.tasks:
        yield "The tasks' delay clocks were not recorded: these causes are from stacks alone."
    if not evidence.looks:
        yield "No stack was recorded: these causes are from the delay clocks alone."
    elif not any(look.stack for look in evidence.looks):
        yield "No stack could be read (root only): these causes are from wait channels and clocks."
    elif run.fact("kernel", "unwinder") == "guess":
        yield (
            "This kernel guesses its stacks (CONFIG_UNWINDER_GUESS): causes that they tell may be "
            "others'."
        )
    if run.fact("evidence", "delayacct") is False:
        yield "Delay accounting was off: waits for block devices have no clock."
    if evidence.trace is None:
        yield "The kernel's trace events were not counted: no reason of a throttled task."
    missing = run.fact("evidence", "not_available")
    names = [safe_line(name, 60) for name in missing] if isinstance(missing, list) else []
    if lost := lost_by(names, evidence.trace):
        yield f"Not available on this kernel: {first_names(lost, 12)}."
    problems = run.fact("evidence", "problems")
    if isinstance(problems, list):
        yield from (safe_line(problem) for problem in problems[:8])


def _disk(run: Run, machine: RunCounters) -> Iterator[str]:
    crypt = run.fact("crypt") != "none"
    if not machine.disk_counted:
        clause = f", and {NOT_APART}" if crypt else ""
        yield f"The disk has no request queue to be watched: how busy it was is not known{clause}."
    elif crypt and not machine.crypt_apart:
        why = "no trace" if machine.trace is None else "its work was not counted"
        yield f"{NOT_APART}: {why}."
    ended = trace_end(run, machine)
    if ended is not None:
        yield f"trace.tsv ends at {ended:.1f} s."
    traced, counted = machine.crypt_busy()
    if traced is not None and counted is not None and traced > max(MORE * counted, counted + 1):
        yield (
            f"dm-crypt was busy for {traced:.0f} s by its requests, for {counted:.0f} s by "
            "/proc/diskstats: its share is rough."
        )


def _rough(run: Run) -> Iterator[str]:
    """Lateness of the evidence observer: it stamps no line, so the run stays valid."""
    for report in observers(run):
        if report.get("name") != EVIDENCE_OBSERVER:
            continue
        taken, missed, late = (
            number(report.get(key)) or 0.0 for key in ("samples", "missed", "worst_late_s")
        )
        faults = []
        if missed > MISSED * (taken + missed):
            faults.append(f"missed {missed:,.0f} of {plural(int(taken + missed), 'sample')}")
        if late > LATE_S:
            faults.append(f"was {late:.1f} s late")
        if faults:
            yield f"The evidence {' and '.join(faults)}: the causes are rougher."
