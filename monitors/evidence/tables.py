# SPDX-License-Identifier: GPL-2.0-or-later
"""The rows of the evidence's tables (docs/FORMAT.md), as bytes; a stamp begins each."""

from __future__ import annotations

from contract.run_files import ALLOCFAIL, BLOCKED, LATE, STAMP, TASKS, TRACE
from monitors.evidence.blocked_tasks import where
from monitors.evidence.tasks import Stat, Task
from monitors.lines import escape

TYPE_CHECKING = False
if TYPE_CHECKING:
    from monitors.trace.trace import Trace

MOST_STACKS = 128
STAMPS = f"{STAMP}\t{LATE}\t".encode()
BLOCKED_COLUMNS = STAMPS + b"stream\tsilent_s\tpid\tcomm\tstate\twchan\tmajflt\tminflt\tstack\n"
FAILURES_COLUMNS = b"elapsed_s\tcount\tpid\tcomm\torder\tgfp\tstack\n"
RECLAIM_COLUMNS = b"pid\tcomm\tdirect_reclaims\tdirect_reclaim_us\tdirect_reclaim_pages\n"


def headers(delays: list[str], trace: Trace | None) -> list[tuple[str, bytes]]:
    """The first lines; delays: what taskstats tells."""
    columns = "".join(f"{name}_us\t" for name in delays).encode()
    found = [(TASKS, STAMPS + b"stream\tpid\tcomm\tstate\t" + columns + b"majflt\tminflt\n")]
    found.append((BLOCKED, BLOCKED_COLUMNS))
    if trace:
        found.append((TRACE, STAMPS + b"\t".join(trace.columns) + b"\n"))
        found.append((ALLOCFAIL, FAILURES_COLUMNS))
    return found


def stamp(elapsed: float, late: float) -> bytes:
    """The first two cells of a row, in seconds."""
    return b"%.3f\t%.3f\t" % (elapsed, late)


def task_row(begin: bytes, stream: bytes, task: Task, stat: Stat, delays: bytes) -> bytes:
    """Of tasks.tsv; delays: cells, each with a tab behind it."""
    head = b"%b%b\t%d\t%b\t%b\t" % (begin, stream, task.pid, task.cell, stat.state)
    return b"%b%b%b\t%b\n" % (head, delays, stat.majflt, stat.minflt)


def blocked_row(begin: bytes, stream: bytes, silent: bytes, task: Task, stat: Stat) -> bytes:
    """Of blocked.tsv: where the task is now."""
    wchan, stack = where(task)
    head = b"%b%b\t%b\t%d\t%b\t%b\t" % (begin, stream, silent, task.pid, task.cell, stat.state)
    return b"%b%b\t%b\t%b\t%b\n" % (head, wchan, stat.majflt, stat.minflt, stack)


def trace_row(begin: bytes, trace: Trace) -> bytes:
    """Of trace.tsv, now."""
    return begin + b"\t".join(trace.cells()) + b"\n"


class Stacks:
    """Return addresses as folded stacks; those that come again are kept."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._kept: dict[tuple[int, ...], bytes] = {}

    def folded(self, stack: tuple[int, ...]) -> bytes:
        """Functions, innermost first."""
        found = self._kept.get(stack)
        if found is None:
            names = self._trace.symbols(stack)
            found = b" <- ".join([names[address] for address in stack])
            if len(self._kept) < MOST_STACKS:
                self._kept[stack] = found
        return found


def failure_rows(trace: Trace, stacks: Stacks, t0: float) -> bytes:
    """Of allocfail.tsv: what failed since the last call; t0: the zero of elapsed."""
    rows = []
    for first_ns, count, pid, comm, order, gfp, stack in trace.failures():
        head = b"%.3f\t%d\t%d\t%b\t" % (first_ns / 1e9 - t0, count, pid, escape(comm).encode())
        rows.append(b"%b%d\t%#x\t%b\n" % (head, order, gfp, stacks.folded(stack)))
    return b"".join(rows)


def reclaim_rows(trace: Trace) -> bytes:
    """The whole of reclaim.tsv."""
    rows = [RECLAIM_COLUMNS]
    for pid, comm, count, us, pages in trace.reclaimers():
        rows.append(b"%d\t%b\t%d\t%d\t%d\n" % (pid, escape(comm).encode(), count, us, pages))
    return b"".join(rows)
