# SPDX-License-Identifier: GPL-2.0-or-later
"""Parses a kernel's log as a stream: takes lines, and returns each record when it is complete.

If two CPUs print at the same time, the caller of each line (CONFIG_PRINTK_CALLER) separates their
lines. Without callers a line goes to the record that was printed last, if it can follow there, or
else to another record that it can follow. Records that could both have the line are marked `mixed`.
"""

import heapq
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from analysis.kernel_log import kinds
from analysis.kernel_log.lines import LONGEST, Lines, Message
from analysis.kernel_log.open_record import Open, Record

PATIENCE = 200  # lines of other records after which a record without new lines is over,
PATIENCE_NAMED = 5000  # the same if each line has its caller,
PATIENCE_SECONDS = 60  # and the seconds of the kernel's clock
MOST_OPEN = 64  # open records at a time
MOST_OPEN_UNNAMED = 8  # the same if lines have no caller
_TEXT = 4096  # characters of a line that are parsed


@dataclass
class Log:
    """What the log contains beside its records."""

    release: str | None = None  # the kernel's, from "Linux version"
    suppressed: int = 0  # page allocation failures that the kernel did not print
    hung_tasks_suppressed: bool = False
    missed: bool = False  # records that the kernel's ring lost (kern.log's <missed>)
    by_kind: Counter[str] = field(default_factory=Counter)  # number of records


class Parser:
    """Takes the lines in order; `done` holds the complete records, in the log's order."""

    def __init__(self, log: Log) -> None:
        self.log = log
        self.open: list[Open] = []
        self.done: list[Record] = []
        self._lines = Lines()
        self._closed: list[tuple[int, Record]] = []
        self._begun = 0
        self._count = 0  # messages so far
        self._last: Open | None = None  # the record that got the last line of any record
        self._taken: Open | None = None  # the record that got the last message
        self._suppressed = 0  # failures not yet counted with a record
        self._suppressed_by_any = 0  # messages of any kind, by the previous message

    def line(self, number: int, raw: bytes, *, telling: bool) -> None:
        """Take a line of the log; telling: it contains one of kinds.LITERALS."""
        if raw[:2] == b"--" and raw.startswith((b"-- Reboot --", b"-- Boot ")):
            self._restarted()
            return
        for message in self._lines.messages(raw):
            self._count += 1
            if not message.continued:
                self._taken = None
            text = message.text[:_TEXT]
            if not (telling and self._tell(number, message, text)):
                self._go_on(message, text.strip())
            if self.open and not self._count % 32:
                self._expire(message.time)

    def finish(self) -> None:
        """Close all records at the end of the log or of a boot; incomplete records are `cut`."""
        for record in list(self.open):
            record.cut = self._printing(record)
            if record.kind == kinds.FAILURE:
                record.suppressed, self._suppressed = record.suppressed + self._suppressed, 0
            self._close(record)

    def _printing(self, record: Open) -> bool:
        """Whether the kernel was probably still printing the record."""
        return not record.ended() and (record is self._last or record.in_stack())

    def _tell(self, number: int, message: Message, text: str) -> bool:
        """Whether the line was more than a continuation of a record."""
        if message.continued:
            if "<missed>" in text:
                self.log.missed = True
            return False
        if text.startswith("<missed>"):
            self.log.missed = True
        elif text.startswith("Linux version "):
            self._restarted()
            self.log.release = [*text.split(), ""][2][:80] or None
        elif kinds.HUNG_TASKS_SUPPRESSED in text:
            self.log.hung_tasks_suppressed = True
        elif match := kinds.SUPPRESSED.match(text):
            self._left_out(match[1], int(match[2]))
            return True
        elif beginning := kinds.beginning(text):
            if not (beginning.kind == kinds.OOM and self._further(beginning, message, text)):
                self._begin(number, message, beginning, text)
            return True
        return False

    def _left_out(self, printer: str, count: int) -> None:
        if kinds.SUPPRESSED_FAILURES.match(printer):
            self._count_suppressed(count)
        elif printer in kinds.SUPPRESSED_BY_ANY:
            if any(record.kind == kinds.FAILURE for record in self.open):
                self._count_suppressed(count)
            else:
                self._suppressed_by_any = count

    def _count_suppressed(self, count: int) -> None:
        self.log.suppressed += count
        self._suppressed += count

    def _begin(self, number: int, message: Message, beginning: kinds.Beginning, text: str) -> None:
        stops = beginning.kind in kinds.LOCKUPS or text.startswith("Kernel panic")
        for record in list(self.open):
            record.interrupted |= stops and record.allocates and self._printing(record)
            if record.caller == message.caller and (message.caller or record.ended()):
                self._close(record)
        while len(self.open) >= (MOST_OPEN if message.caller else MOST_OPEN_UNNAMED):
            self._close(self.open[0])
        self._begun += 1
        record = Open(self._begun, number, message, beginning, self.log.release)
        if beginning.kind == kinds.FAILURE:
            if self._suppressed_by_any:
                self._count_suppressed(self._suppressed_by_any)
            record.suppressed, self._suppressed = self._suppressed, 0
        self._suppressed_by_any = 0
        self._last = record
        self._put(record, message, text.strip(), kinds.DETAIL)
        self.open.append(record)

    def _further(self, beginning: kinds.Beginning, message: Message, text: str) -> bool:
        """Whether the line continues an OOM kill; if so, it is added."""
        for record in reversed(self.open):
            if (
                record.kind in (kinds.OOM, kinds.MEMCG_OOM)
                and record.caller == message.caller
                and record.step < beginning.step
            ):
                record.oom(beginning)
                self._put(record, message, text.strip(), kinds.DETAIL)
                if record.complete:
                    self._close(record)
                return True
        return False

    def _go_on(self, message: Message, text: str) -> None:
        if not self.open:
            return
        which = kinds.part(text)
        if which is not None and (record := self._whose(message, which, text)):
            self._put(record, message, text, which)
        elif not message.continued and text:
            self._suppressed_by_any = 0
            if other := kinds.beginning(text):
                self._begin(0, message, other, text)
            for record in list(self.open):
                if record.complete and record.caller == message.caller:
                    self._close(record)

    def _whose(self, message: Message, which: int, text: str) -> Open | None:
        if message.continued:
            return self._taken if self._taken in self.open else None
        last = self._last
        if last and last.caller == message.caller and last.takes(which, text):
            return last
        for record in reversed(self.open):
            if record.caller == message.caller and record.takes(which, text):
                return record
        return None

    def _put(self, record: Open, message: Message, text: str, which: int) -> None:
        record.add(text, which, self._count, message.time)
        if self._last and self._last is not record and not message.caller:
            self._last.mixed = record.mixed = True
        self._last = self._taken = record

    def _expire(self, time: float | str | None) -> None:
        for record in list(self.open):
            patience = PATIENCE_NAMED if record.caller else PATIENCE
            late = (
                isinstance(time, float)
                and isinstance(record.last_time, float)
                and not -1 <= time - record.last_time <= PATIENCE_SECONDS
            )
            if late or self._count - record.count > patience:
                self._close(record)

    def _restarted(self) -> None:
        self.finish()
        self._suppressed = self._suppressed_by_any = 0

    def _close(self, record: Open) -> None:
        self.open.remove(record)
        if self._last is record:
            self._last = None
        if record.kind != kinds.OTHER:
            self.log.by_kind[record.kind] += 1
            heapq.heappush(self._closed, (record.number, record.whole()))
        first = min((other.number for other in self.open), default=self._begun + 1)
        while self._closed and self._closed[0][0] < first:
            self.done.append(heapq.heappop(self._closed)[1])


def parse(chunks: Iterable[bytes], log: Log) -> Iterator[Record]:
    """The records of a log that comes in pieces of any size; `log` is filled meanwhile.

    Most lines of a log are irrelevant, and a search for kinds.LITERALS skips them. Only lines that
    contain a literal, and the lines that follow while a record is open, are parsed.
    """
    parser = Parser(log)
    number, rest = 1, b""
    for chunk in chunks:
        block = rest + chunk
        end = block.rfind(b"\n") + 1
        if end:
            number = _block(parser, number, block[:end])
        rest = block[end:][:LONGEST]
        yield from parser.done
        parser.done.clear()
    if rest:
        _block(parser, number, rest + b"\n")
    parser.finish()
    yield from parser.done


def _block(parser: Parser, number: int, block: bytes) -> int:
    """Feed whole lines, of which the first has `number`; returns the number of the next line."""
    at = 0
    for telling in sorted(_telling(block)):
        number, at = _follow(parser, number, block, at, telling)
        number += block.count(b"\n", at, telling)
        at = block.index(b"\n", telling) + 1
        parser.line(number, block[telling : at - 1], telling=True)
        number += 1
    number, at = _follow(parser, number, block, at, len(block))
    return number + block.count(b"\n", at)


def _follow(parser: Parser, number: int, block: bytes, at: int, until: int) -> tuple[int, int]:
    """Feed lines while a record is open; returns the number and the place of the next line."""
    while parser.open and at < until:
        end = block.index(b"\n", at)
        parser.line(number, block[at:end], telling=False)
        number, at = number + 1, end + 1
    return number, at


def _telling(block: bytes) -> set[int]:
    """The places at which lines with a literal begin."""
    starts = set()
    for literal in kinds.LITERALS:
        place = block.find(literal)
        while place >= 0:
            starts.add(block.rfind(b"\n", 0, place) + 1)
            place = block.find(literal, block.index(b"\n", place))
    return starts
