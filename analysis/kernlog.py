# SPDX-License-Identifier: GPL-2.0-or-later
"""What a kernel's log says of memory and freezes: each failed allocation, OOM kill, hung task,
lock-up and RCU stall, with its full text.

usage: python3 -m analysis.kernlog [--full] [--json] [FILE…]

FILE is any kernel log: dmesg, journalctl, syslog, /dev/kmsg, kern.log of a run; .gz and .xz too;
standard input if there is none, or for "-". A kernel that says "N callbacks suppressed", or whose
ring lost records, said more than its log holds: the count is then a lower bound ("at least").
"""

import argparse
import gzip
import io
import json
import lzma
import sys
import tempfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, fields
from typing import IO, Any, BinaryIO

from analysis import klog_kinds as kinds
from analysis.klog_open import Record
from analysis.klog_records import Log, parse
from analysis.words import plain, plural
from setup.errors import UserError, run_command

CHUNK = 1 << 20
HUNG_TASK_WARNINGS = 10  # kernel.hung_task_warnings: older kernels fall silent without a word
MOST_ROWS = 1000  # different (order, flags, caller) that are told apart
SHOWN_ROWS = 20
_KEYS = tuple(each.name for each in fields(Record))
_ALWAYS = ("kind", "line", "time")
STDIN = "(standard input)"


@dataclass
class KernelLog:
    """Counts; `at_least` names those that are a lower bound."""

    page_allocation_failures: int = 0
    oom_kills: int = 0
    hung_tasks: int = 0
    soft_lockups: int = 0
    suppressed: int = 0  # failures that the log says it left out
    missed: bool = False  # the kernel's ring lost records
    at_least: set[str] = field(default_factory=set)


def records(stream: BinaryIO, log: Log | None = None) -> Iterator[Record]:
    """The records of a log in its order; memory does not grow with the log."""
    return parse(iter(lambda: stream.read(CHUNK), b""), Log() if log is None else log)


def of_lines(lines: Iterable[str], log: Log | None = None) -> Iterator[Record]:
    """The records in the lines of a log."""
    return parse(_chunks(lines), Log() if log is None else log)


def count_failures(
    lines: Iterable[str], of_key: Counter[tuple[int, int]] | None = None
) -> KernelLog:
    """Count the failures in the lines of a log; memory does not grow with the log.

    of_key: gets the page allocation failures by (order, gfp mask).
    """
    log, count = Log(), KernelLog()
    for record in of_lines(lines, log):
        if of_key is not None and record.kind == kinds.FAILURE and record.mode is not None:
            of_key[record.order or 0, int(record.mode, 16)] += 1
        # An OOM killer that was invoked and named no victim has killed nobody yet.
        count.oom_kills += record.kind in (kinds.OOM, kinds.MEMCG_OOM) and record.task is not None
    count.page_allocation_failures = log.found[kinds.FAILURE]
    count.hung_tasks = log.found[kinds.HUNG_TASK]
    count.soft_lockups = log.found[kinds.SOFT_LOCKUP]
    count.suppressed, count.missed = log.suppressed, log.missed
    if log.missed:
        count.at_least |= {"page_allocation_failures", "oom_kills", "hung_tasks", "soft_lockups"}
    if log.suppressed:
        count.at_least.add("page_allocation_failures")
    if _hung_tasks_at_least(log):
        count.at_least.add("hung_tasks")
    return count


def attach(found: Iterable[Record]) -> str:
    """The full text of each record, each under a line that says what it is."""
    return "".join(_attached(record) for record in found)


def as_json(record: Record, *, full: bool = False) -> dict[str, Any]:
    """What applies to the record, under its names in Record; its text only if full."""
    values = {key: getattr(record, key) for key in _KEYS if full or key != "text"}
    return {
        key: value
        for key, value in values.items()
        if key in _ALWAYS or not (value is None or value is False or value in ((), {}))
    }


def _hung_tasks_at_least(log: Log) -> bool:
    return log.hung_tasks_suppressed or log.found[kinds.HUNG_TASK] >= HUNG_TASK_WARNINGS


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
    return "\n".join([f"=== {_told(record)}", *record.text, "", ""])


def _told(record: Record) -> str:
    """The record in a line."""
    when = f"{record.time:.6f}" if isinstance(record.time, float) else record.time or "no time"
    who = record.task or "?"
    parts = [
        f"line {record.line}",
        plain(when, 40),
        kinds.KINDS[record.kind],
        plain(who, 64) + (f" [{record.pid}]" if record.pid is not None else ""),
    ]
    if record.order is not None:
        parts.append(f"order:{record.order}")
    if record.mode:
        parts.append(f"mode:{record.mode}" + (f"({record.flags})" if record.flags else ""))
    if record.caller:
        parts.append(f"in {plain(record.caller, 100)}")
    if record.invoked_by:
        parts.append(f"invoked by {plain(record.invoked_by, 64)}")
    if record.cpu is not None:
        parts.append(f"CPU {record.cpu}")
    if record.seconds is not None:
        parts.append(f"for {record.seconds:g} s")
    if record.suppressed:
        parts.append(f"{record.suppressed} left out before it")
    parts += ["cut"] if record.cut else []
    parts += ["lines of two CPUs mixed"] if record.mixed else []
    return ", ".join(parts)


class Summary:
    """Counts of one log's records, whatever their number."""

    def __init__(self) -> None:
        self.log = Log()
        self.cut = 0
        self._failures: Counter[tuple[str, str, str]] = Counter()

    def add(self, record: Record) -> None:
        """Count one."""
        self.cut += record.cut
        if record.kind not in (kinds.FAILURE, kinds.STALL):
            return
        mode = plain(record.flags or record.mode or "?", 100)
        row = (
            "?" if record.order is None else str(record.order),
            mode,
            plain(record.caller or "?", 100),
        )
        if row not in self._failures and len(self._failures) >= MOST_ROWS:
            row = ("…", "others", "others")
        self._failures[row] += 1

    def text(self, name: str) -> Iterator[str]:
        """The summary's lines."""
        yield f"{plain(name, 200)}:"
        if not any(self.log.found.values()):
            yield "  no record"
        for kind, noun in kinds.KINDS.items():
            if count := self.log.found[kind]:
                yield f"  {self._at_least(kind)}{plural(count, noun)}"
        if self.log.suppressed:
            left = plural(self.log.suppressed, "page allocation failure")
            yield f"  {left} left out by the kernel itself"
        if self.log.missed:
            yield "  the kernel's ring lost records"
        if self.cut:
            yield f"  {plural(self.cut, 'record')} cut short"
        if self._failures:
            yield f"  {'count':>7} {'order':>5}  flags, caller"
        rows = sorted(self._failures.items(), key=lambda row: (-row[1], row[0]))
        for (order, mode, caller), count in rows[:SHOWN_ROWS]:
            yield f"  {count:>7} {order:>5}  {mode}, {caller}"
        if len(rows) > SHOWN_ROWS:
            yield f"  {sum(count for _, count in rows[SHOWN_ROWS:]):>7} {'':>5}  others"

    def _at_least(self, kind: str) -> str:
        bound = self.log.missed or (kind == kinds.FAILURE and self.log.suppressed)
        bound = bound or (kind == kinds.HUNG_TASK and _hung_tasks_at_least(self.log))
        return "at least " if bound else ""


def _pieces(name: str) -> Iterator[bytes]:
    """A log's bytes; UserError with what is wrong with it."""
    openers: dict[str, Callable[[str], Any]] = {"gz": gzip.GzipFile, "xz": lzma.LZMAFile}
    try:
        if name == "-":
            yield from iter(lambda: sys.stdin.buffer.read(CHUNK), b"")
            return
        with openers.get(name.rpartition(".")[2], io.FileIO)(name) as stream:
            yield from iter(lambda: stream.read(CHUNK), b"")
    except (EOFError, gzip.BadGzipFile, zlib.error, lzma.LZMAError) as error:
        raise UserError(f"{plain(name)}: {error}", hint="is it damaged?") from error
    except OSError as error:
        raise UserError(f"{plain(name)}: {error.strerror or error}") from error


def _print_json(names: list[str], *, full: bool) -> None:
    for name in names:
        for record in parse(_pieces(name), Log()):
            values = as_json(record, full=full)
            if len(names) > 1:
                values["file"] = name
            print(json.dumps(values))


def _print_text(names: list[str], *, full: bool) -> None:
    for name in names:
        summary = Summary()
        # The summary comes first, and a log can hold more records than memory.
        with tempfile.TemporaryFile("w+", encoding="utf-8") as listed:
            for record in parse(_pieces(name), summary.log):
                summary.add(record)
                listed.write(_attached(record) if full else f"  {_told(record)}\n")
            print("\n".join(summary.text(STDIN if name == "-" else name)))
            _copy(listed, sys.stdout)
        print()


def _copy(source: IO[str], target: IO[str]) -> None:
    source.seek(0)
    if source.read(1):
        source.seek(0)
        target.write("\n")
    while piece := source.read(CHUNK):
        target.write(piece)


def main(arguments: list[str] | None = None) -> int:
    """Print what the logs say."""
    parser = argparse.ArgumentParser(prog="python3 -m analysis.kernlog", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("files", nargs="*", metavar="FILE", help="a kernel log")
    parser.add_argument("--full", action="store_true", help="each record's full text, to attach")
    parser.add_argument("--json", action="store_true", help="one object a record, a line each")
    options = parser.parse_args(arguments)
    show = _print_json if options.json else _print_text
    show(options.files or ["-"], full=options.full)
    sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(run_command("analysis.kernlog", main))
