# SPDX-License-Identifier: GPL-2.0-or-later
"""TEST HELPER: the evidence of one stall, made by hand; nothing here was measured."""

from dataclasses import dataclass, field
from pathlib import Path

from analysis.stall_causes.causes import Card
from analysis.stall_causes.run_causes import run_causes
from benchmarks.synthetic_results.make import line_log
from tests.support.loading import one_run

BEGIN, STEP = 5.0, 0.25
CLOCKS = ("cpu_us", "rq_us", "blkio_us", "swapin_us", "freepages_us", "thrashing_us", "compact_us")
SWAP_IN = (
    "io_schedule <- folio_wait_bit_common <- folio_lock_or_retry <- do_swap_page <- "
    "__handle_mm_fault <- handle_mm_fault <- exc_page_fault <- asm_exc_page_fault"
)
FILE_READ = (
    "io_schedule <- folio_wait_bit_common <- filemap_fault <- __do_fault <- do_fault <- "
    "__handle_mm_fault <- handle_mm_fault <- exc_page_fault <- asm_exc_page_fault"
)
PIPE_READ = "pipe_read <- vfs_read <- ksys_read <- do_syscall_64 <- entry_SYSCALL_64_after_hwframe"


@dataclass
class Program:
    """One task of gitk-1, alike all through the stall: rates are shares of the time.

    `rates`: clock -> seconds a second, added at each sample; `at_end`: clock -> seconds that are
    added by the sample that ends the stall only. `looks`: (state, stack) in turn.
    """

    pid: int
    comm: str = "python3"
    state: str = "D"
    rates: dict[str, float] = field(default_factory=dict)
    at_end: dict[str, float] = field(default_factory=dict)
    looks: list[tuple[str, str]] = field(default_factory=list)
    stream: str = "gitk-1"


def evidence(
    programs: list[Program],
    length: float = 10.0,
    *,
    clocks: tuple[str, ...] = CLOCKS,
    trace: dict[str, float] | None = None,
) -> dict[str, str | bytes]:
    """The files of a run with one stall from BEGIN on.

    `trace`: counter -> units a second in the stall.
    """
    end = BEGIN + length
    stamps = [n * STEP for n in range(int((end + 2) / STEP) + 1)]
    columns = ("elapsed_s", "late_s", "stream", "pid", "comm", "state", *clocks)
    rows = ["\t".join(columns)]
    for stamp in stamps:
        inside = min(max(0.0, stamp - BEGIN), length)
        for one in programs:
            values = {
                name: inside * one.rates.get(name, 0.0)
                + (one.at_end.get(name, 0.0) if stamp >= end else 0.0)
                for name in CLOCKS
            }
            cells = [f"{stamp:.3f}", "0.000", one.stream, str(one.pid), one.comm, one.state]
            rows.append("\t".join(cells + [str(round(values[name] * 1e6)) for name in clocks]))
    files: dict[str, str | bytes] = {
        "latency-gitk-1.log": line_log([(BEGIN, "a"), (length, "b"), (0.1, "c")], 0.1),
        "tasks.tsv": "\n".join(rows) + "\n",
        "blocked.tsv": looks(programs, length),
    }
    if trace is not None:
        lines = ["\t".join(("elapsed_s", "late_s", *trace))]
        for stamp in stamps:
            inside = min(max(0.0, stamp - BEGIN), length)
            sums = [str(round(rate * inside)) for rate in trace.values()]
            lines.append("\t".join((f"{stamp:.3f}", "0.000", *sums)))
        files["trace.tsv"] = "\n".join(lines) + "\n"
    return files


def looks(programs: list[Program], length: float) -> str:
    """blocked.tsv: a look at each program every half second."""
    rows = ["elapsed_s\tlate_s\tstream\tsilent_s\tpid\tcomm\tstate\twchan\tmajflt\tminflt\tstack"]
    for n in range(1, int(length * 2)):
        for one in programs:
            if one.looks:
                state, stack = one.looks[n % len(one.looks)]
                when = f"{BEGIN + n / 2:.3f}\t0.000\t{one.stream}\t{n / 2:.3f}"
                rows.append(f"{when}\t{one.pid}\t{one.comm}\t{state}\t0\t1\t1\t{stack}")
    return "\n".join(rows) + "\n"


def card(folder: Path, files: dict[str, str | bytes]) -> Card:
    """The card of the only stall."""
    # What comes before the stall is one, too: 5 s without a line.
    found = run_causes(one_run(folder, files))
    assert found is not None
    return next(one for one in found.cards if one.stall.begin == BEGIN)


def share(one: Card, cause: str) -> float:
    """Share (0 to 1) of the stall that has this cause."""
    return one.seconds.get(cause, 0.0) / one.stall.length
