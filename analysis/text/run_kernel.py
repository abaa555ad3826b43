# SPDX-License-Identifier: GPL-2.0-or-later
"""One run's kernel as text: what it moved, what its log says, what observing it cost."""

from collections.abc import Iterator, Sequence
from typing import Any

from analysis.figures import counters, observer_faults
from analysis.figures.failed_allocations import look
from analysis.reading.facts import swap_kind
from analysis.reading.latency_log import number
from analysis.reading.load import Run
from analysis.reading.words import NOT_AVAILABLE, mib, plural, safe_line
from analysis.text.layout import entry
from contract.swap import ZRAM, ZSWAP

MIB = float(1 << 20)


def counter_lines(run: Run) -> Iterator[str]:
    """Entries on swap and page IO (MiB), and writeback (pages)."""
    for name, into, out in (
        ("swap", counters.SWAP_IN, counters.SWAP_OUT),
        ("page IO", counters.PAGE_IN, counters.PAGE_OUT),
    ):
        moved = (counters.moved_mib(run, into), counters.moved_mib(run, out))
        yield from entry(name, f"in {mib(moved[0])}, out {mib(moved[1])}")
    yield from _compressed(run)
    most = counters.peak(run, "vmstat", "nr_writeback")
    pages = NOT_AVAILABLE if most is None else f"{most:,.0f} pages at the most"
    yield from entry("nr_writeback", pages)


def _compressed(run: Run) -> Iterator[str]:
    """What zswap kept from the disk, or the most memory that zram took, in MiB.

    What zram holds at the end means nothing: the programs and their swap are gone by then.
    """
    if swap_kind(run) == ZSWAP:
        flows = (counters.ZSWAP_IN, counters.ZSWAP_OUT, counters.ZSWAP_BACK)
        into, out, back = (mib(counters.moved_mib(run, flow)) for flow in flows)
        yield from entry("zswap", f"in {into}, out {out}; written back {back}")
    elif swap_kind(run) == ZRAM:
        most = number(run.fact("swap", "mm_stat", "mem_used_max"))
        failed = number(run.fact("swap", "io_stat", "failed_writes"))
        text = NOT_AVAILABLE if most is None else f"{mib(most / MIB)} of memory at the most"
        yield from entry(
            "zram", text + (f"; {plural(int(failed), 'failed write')}" if failed else "")
        )


def log_lines(run: Run) -> Iterator[str]:
    """Entries on the kernel log: its events by kind, and failed allocations."""
    allocations = look(run)
    log, parts = allocations.log, []
    if log is None:
        yield from entry("kernel log", NOT_AVAILABLE)
        return
    for key, noun in (
        ("page_allocation_failures", "page allocation failure"),
        ("oom_kills", "OOM kill"),
        ("hung_tasks", "hung task"),
        ("soft_lockups", "soft lockup"),
    ):
        bound = "at least " if key in log.at_least else ""
        parts.append(bound + plural(getattr(log, key), noun))
    text = ", ".join(parts)
    if log.suppressed:
        text += f"; {plural(log.suppressed, 'more message')} suppressed by the kernel"
    yield from entry("kernel log", text + ("; its ring lost records" if log.missed else ""))
    if allocations.happened is not None or allocations.echoes_lost is not None:
        yield from entry("allocation", f"page allocation failures: {allocations.words()}")
    for problem in allocations.problems:
        yield from entry("with care", safe_line(problem))


def _observers_memory(observing: Any, locked: Sequence[float]) -> str:
    """The memory that observing took: as measured, else what the observers had locked."""
    measured = observing if isinstance(observing, dict) else {}
    names = ("memory_kib", "locked_kib", "kernel_kib")
    memory, pinned, kernel = (number(measured.get(name)) for name in names)
    if memory is not None and pinned is not None and kernel is not None:
        of_it = f"{mib(pinned / 1024)} locked, {mib(kernel / 1024)} of the kernel's"
        return f"{mib(memory / 1024)} of memory ({of_it})"
    return f"{mib(sum(locked) / 1024)} locked" if locked else f"locked memory {NOT_AVAILABLE}"


def observer_lines(run: Run) -> Iterator[str]:
    """What the observers cost: as meta.json has it, else as far as their events do."""
    listed = run.fact("observers")
    reports: list[Any] = listed if isinstance(listed, list) and listed else run.events
    observers = [
        one for one in reports if isinstance(one, dict) and number(one.get("cpu_s")) is not None
    ]
    locked = [number(one.get("locked_kib")) for one in observers]
    spent = [(number(one["cpu_s"]), number(one.get("elapsed_s"))) for one in observers]
    shares = [cpu / lasted for cpu, lasted in spent if cpu is not None and lasted]
    known = [kib for kib in locked if kib is not None]
    late = [number(one.get("worst_late_s")) for one in observers] + [counters.worst_lateness(run)]
    latest = max((one for one in late if one is not None), default=None)
    parts = [
        _observers_memory(run.fact("observing"), known),
        f"{100 * sum(shares):.2f} % of one CPU" if shares else f"CPU share {NOT_AVAILABLE}",
        f"lateness {NOT_AVAILABLE}" if latest is None else f"latest sample {latest:.3f} s late",
    ]
    missed = sum(number(one.get("missed")) or 0 for one in observers)
    parts += [f"{missed:,.0f} samples missed"] if missed else []
    if any(one.get("dropped") for one in observers):  # a count for each file
        parts.append("rows dropped, its files have holes")
    yield from entry("observers", ", ".join(parts))
    for why in observer_faults.of_run(run):
        yield from entry("with care", f"observer disturbed: {why}; in no verdict")
    problems = run.fact("observer_problems")
    for problem in problems if isinstance(problems, list) else []:
        yield from entry("with care", f"observer: {safe_line(problem)}")
