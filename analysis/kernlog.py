# SPDX-License-Identifier: GPL-2.0-or-later
"""What a kernel's log says of memory and freezes: each failed allocation, OOM kill, hung task,
lock-up and RCU stall, with its full text.

usage: python3 -m analysis.kernlog [--full] [--json] [FILE…]

FILE is any kernel log: dmesg, journalctl, syslog, /dev/kmsg, kern.log of a run; .gz and .xz too;
standard input if there is none, or for "-". Most distributions keep no such file any more (Debian
since 12): `journalctl -k -b -1 | python3 -m analysis.kernlog -` is of the boot before this one,
`journalctl -k -b` of this one. A kernel that says "N callbacks suppressed", or whose
ring lost records, said more than its log holds: the count is then a lower bound ("at least").
"""

import argparse
import gzip
import io
import json
import lzma
import re
import sys
import tempfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from typing import IO, Any

from analysis.kernel_log import kinds
from analysis.kernel_log.open_record import Record
from analysis.kernel_log.parser import Log, parse
from analysis.kernel_log.records import CHUNK, as_json, attach, headline, hung_tasks_at_least
from analysis.reading.words import plural, safe_line
from errors import UserError, run_command

MOST_ROWS = 1000  # different (order, flags, caller) that have a row of their own


SHOWN_ROWS = 20


STDIN = "(standard input)"
JOURNAL = "journalctl -k -b -1 | python3 -m analysis.kernlog -"  # the log of the previous boot
# A line with text, other than journalctl's own ("-- No entries --").
_TEXT = re.compile(rb"^(?!-- )[^\S\n]*\S", re.MULTILINE)


class Summary:
    """Counts of one log's records; its size does not depend on their number."""

    def __init__(self) -> None:
        self.log = Log()
        self.cut = 0
        self._failures: Counter[tuple[str, str, str]] = Counter()

    def add(self, record: Record) -> None:
        """Count a record."""
        self.cut += record.cut
        if record.kind not in (kinds.FAILURE, kinds.STALL):
            return
        mode = safe_line(record.flags or record.mode or "?", 100)
        row = (
            "?" if record.order is None else str(record.order),
            mode,
            safe_line(record.caller or "?", 100),
        )
        if row not in self._failures and len(self._failures) >= MOST_ROWS:
            row = ("…", "others", "others")
        self._failures[row] += 1

    def text(self, name: str) -> Iterator[str]:
        """The lines of the summary; name: the log's file name."""
        yield f"{safe_line(name, 200)}:"
        if not any(self.log.by_kind.values()):
            yield "  no record"
        for kind, noun in kinds.KINDS.items():
            if count := self.log.by_kind[kind]:
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
        bound = bound or (kind == kinds.HUNG_TASK and hung_tasks_at_least(self.log))
        return "at least " if bound else ""


def _pieces(name: str) -> Iterator[bytes]:
    """A log's bytes, unpacked; raises UserError if the log cannot be read."""
    openers: dict[str, Callable[[str], Any]] = {"gz": gzip.GzipFile, "xz": lzma.LZMAFile}
    try:
        if name == "-":
            yield from iter(lambda: sys.stdin.buffer.read(CHUNK), b"")
            return
        with openers.get(name.rpartition(".")[2], io.FileIO)(name) as stream:
            yield from iter(lambda: stream.read(CHUNK), b"")
    except (EOFError, gzip.BadGzipFile, zlib.error, lzma.LZMAError) as error:
        raise UserError(f"{safe_line(name)}: {error}", hint="is it damaged?") from error
    except FileNotFoundError as error:
        raise UserError(f"{safe_line(name)}: no such file", hint=JOURNAL) from error
    except OSError as error:
        raise UserError(f"{safe_line(name)}: {error.strerror or error}") from error


def _not_empty(name: str) -> Iterator[bytes]:
    """A log's bytes; raises UserError at the end if no line has text: nobody may read the journal.

    A piece that begins within a line counts as the beginning of one.
    """
    empty = True
    for piece in _pieces(name):
        empty = empty and not _TEXT.search(piece)
        yield piece
    if empty:
        raise UserError(
            f"{STDIN if name == '-' else safe_line(name)}: empty, so nothing is known",
            hint="read a journal with sudo; earlier boots are kept only in /var/log/journal",
        )


def _print_json(names: list[str], *, full: bool) -> None:
    for name in names:
        for record in parse(_not_empty(name), Log()):
            values = as_json(record, full=full)
            if len(names) > 1:
                values["file"] = name
            print(json.dumps(values))


def _print_text(names: list[str], *, full: bool) -> None:
    for name in names:
        summary = Summary()
        # The summary comes first, and a log can hold more records than memory.
        with tempfile.TemporaryFile("w+", encoding="utf-8") as listed:
            for record in parse(_not_empty(name), summary.log):
                summary.add(record)
                listed.write(attach([record]) if full else f"  {headline(record)}\n")
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
    """Print the records of the logs."""
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
