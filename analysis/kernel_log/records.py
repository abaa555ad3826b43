# SPDX-License-Identifier: GPL-2.0-or-later
"""Formats the records of a kernel's log as lines and JSON, and counts them."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, fields
from typing import Any

from analysis.kernel_log import kinds
from analysis.kernel_log.open_record import Record
from analysis.kernel_log.parser import Log, parse
from analysis.reading.words import safe_line

CHUNK = 1 << 20  # bytes
HUNG_TASK_WARNINGS = 10  # kernel.hung_task_warnings: older kernels then stop without a message
_KEYS = tuple(each.name for each in fields(Record))
_ALWAYS = ("kind", "line", "time")


@dataclass
class KernelLog:
    """Counts of records; `at_least` names the counts that are lower bounds."""

    page_allocation_failures: int = 0
    oom_kills: int = 0
    hung_tasks: int = 0
    soft_lockups: int = 0
    suppressed: int = 0  # failures that the kernel did not print
    missed: bool = False  # the kernel's ring lost records
    at_least: set[str] = field(default_factory=set)


def of_lines(lines: Iterable[str], log: Log | None = None) -> Iterator[Record]:
    """The records in the lines of a log."""
    return parse(_chunks(lines), Log() if log is None else log)


def count_failures(
    lines: Iterable[str], of_key: Counter[tuple[int, int]] | None = None
) -> KernelLog:
    """Count the failures in the lines of a log; memory does not grow with the log.

    of_key: is filled with the number of page allocation failures by (order, gfp mask).
    """
    log, count = Log(), KernelLog()
    for record in of_lines(lines, log):
        if of_key is not None and record.kind == kinds.FAILURE and record.mode is not None:
            of_key[record.order or 0, int(record.mode, 16)] += 1
        # If the OOM killer was invoked but named no victim, nothing was killed yet.
        count.oom_kills += record.kind in (kinds.OOM, kinds.MEMCG_OOM) and record.task is not None
    count.page_allocation_failures = log.by_kind[kinds.FAILURE]
    count.hung_tasks = log.by_kind[kinds.HUNG_TASK]
    count.soft_lockups = log.by_kind[kinds.SOFT_LOCKUP]
    count.suppressed, count.missed = log.suppressed, log.missed
    if log.missed:
        count.at_least |= {"page_allocation_failures", "oom_kills", "hung_tasks", "soft_lockups"}
    if log.suppressed:
        count.at_least.add("page_allocation_failures")
    if hung_tasks_at_least(log):
        count.at_least.add("hung_tasks")
    return count


def attach(found: Iterable[Record]) -> str:
    """The full text of the records, each below a line that describes it."""
    return "".join(_attached(record) for record in found)


def as_json(record: Record, *, full: bool = False) -> dict[str, Any]:
    """The values of a record under the names of Record's fields; the text only if full."""
    values = {key: getattr(record, key) for key in _KEYS if full or key != "text"}
    return {
        key: value
        for key, value in values.items()
        if key in _ALWAYS or not (value is None or value is False or value in ((), {}))
    }


def hung_tasks_at_least(log: Log) -> bool:
    return log.hung_tasks_suppressed or log.by_kind[kinds.HUNG_TASK] >= HUNG_TASK_WARNINGS


def _chunks(lines: Iterable[str]) -> Iterator[bytes]:
    held, size = [], 0
    for line in lines:
        held.append(line.rstrip("\r\n").encode("utf-8", "replace") + b"\n")
        size += len(held[-1])
        if size >= CHUNK:
            yield b"".join(held)
            held, size = [], 0
    yield b"".join(held)


def _attached(record: Record) -> str:
    return "\n".join([f"=== {headline(record)}", *record.text, "", ""])


def headline(record: Record) -> str:
    """A line that describes the record."""
    when = f"{record.time:.6f}" if isinstance(record.time, float) else record.time or "no time"
    who = record.task or "?"
    parts = [
        f"line {record.line}",
        safe_line(when, 40),
        kinds.KINDS[record.kind],
        safe_line(who, 64) + (f" [{record.pid}]" if record.pid is not None else ""),
    ]
    if record.order is not None:
        parts.append(f"order:{record.order}")
    if record.mode:
        parts.append(f"mode:{record.mode}" + (f"({record.flags})" if record.flags else ""))
    if record.caller:
        parts.append(f"in {safe_line(record.caller, 100)}")
    if record.invoked_by:
        parts.append(f"invoked by {safe_line(record.invoked_by, 64)}")
    if record.cpu is not None:
        parts.append(f"CPU {record.cpu}")
    if record.seconds is not None:
        parts.append(f"for {record.seconds:g} s")
    if record.suppressed:
        parts.append(f"{record.suppressed} left out before it")
    parts += ["cut"] if record.cut else []
    parts += ["lines of two CPUs mixed"] if record.mixed else []
    return ", ".join(parts)
