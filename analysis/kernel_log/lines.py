# SPDX-License-Identifier: GPL-2.0-or-later
"""Turns a line of a kernel log, in any common form, into the kernel's own messages.

It removes the prefixes of dmesg (plain, -r, -T, -x, -d, --time-format), the console with
CONFIG_PRINTK_CALLER (15ff2069cb7f), /dev/kmsg (Documentation/ABI/testing/dev-kmsg), syslog,
journalctl (-o short, short-iso, short-monotonic, …) and this suite's kern.log
(docs/reference/results-format.md), and splits messages of several lines: rsyslog's #012, kmsg's
\\x0a, indented lines. Lines of programs other than the kernel are no messages.
"""

import re
from typing import NamedTuple

from errors import printable

LONGEST = 65536  # bytes of a line; the rest is left out

_MONTH = r"[A-Z][a-z]{2} [ \d]?\d (?:\d{4} )?\d\d:\d\d:\d\d(?:\.\d{1,9})?(?: \d{4})?"
_ISO = r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z| [A-Z]{3,4}\b| ?[+-]\d\d:?\d\d)?"
_WALL = rf"(?:[A-Z][a-z]{{2}} )?(?:{_MONTH}|{_ISO}|\d{{9,11}}\.\d{{3,9}})"
_PRI = r"(?:<\d{1,3}>(?:1 )?)?"
_HOST = r"[^\s\[<]\S{0,254}"
# A task may also be called "kernel".
_TAG = (
    r"(?:kernel(?:\[\d+\])?:|kernel - - -|klogd:) ?+"
    r"(?!page allocation (?:failure[.:] ?order|stalls for))"
)
_SYSLOG = re.compile(
    rf"{_PRI}(?:(?P<wall>{_WALL}) (?:{_HOST} +){{0,2}}?"
    rf"|\[ *(?P<seconds>\d{{1,10}}\.\d{{1,9}})\] {_HOST} ){_TAG}"
)
_WALLED = re.compile(rf"{_PRI}(?P<wall>{_WALL}) ")
_KMSG = re.compile(
    r"(?P<priority>\d{1,5}),\d{1,20},(?P<usec>\d{1,18}),"
    r"[^;,]{0,20}(?:,caller=(?P<caller>[TC]\d{1,10}))?(?:,[^;]{0,200})?;"
)
_TAGGED = re.compile(_TAG)
_STAMP = re.compile(
    r"<\d{1,3}> ?"
    r"|\[ *(?P<seconds>\d{1,10}\.\d{1,9})(?: <[ +.\d]{1,20}>)?\]"
    rf"(?: ?\[ *(?P<caller>[TC]\d{{1,10}})\])? ?"
    rf"|\[(?P<wall>{_WALL})\](?: ?\[ *(?P<id>[TC]\d{{1,10}})\])? ?"
    r"|\[ *[+<] *\d{1,10}\.\d{1,9}>?\] ?"
    r"|\[(?P<minute>[A-Z][a-z]{2} [ \d]?\d \d\d:\d\d)\] ?"
    r"|(?P<facility>kern|user|mail|daemon|auth|syslog|lpr|news|uucp|cron|authpriv|ftp|local\d)"
    r" *:(?:emerg|alert|crit|err|warn|notice|info|debug) *: ?"
)
_OWN = re.compile(r"\[\d+\.\d{6}\] <\d> ")  # a line of kern.log, which keeps kmsg's escapes
# The most common forms of dmesg and syslog; other lines take the slow path.
_PLAIN = re.compile(
    rf"(?:{_MONTH} \S{{1,255}} kernel: )?\[ *(\d{{1,10}}\.\d{{1,9}})\]"
    r"(?: ?\[ *([TC]\d{1,10})\])? (?![\[<])"
)
_ANSI = re.compile(rb"\x1b(?:\[[\d;?]{0,20}[A-Za-z]?)?")
_OCTAL = re.compile(r"#(0[0-3][0-7])")  # rsyslog's imklog writes control characters so
_ESCAPED = re.compile(rb"\\x([0-9a-f]{2})")


class Message(NamedTuple):
    """A line that the kernel printed."""

    time: float | str | None  # seconds of its own clock, or the log's wall clock as text
    caller: str | None  # T123 (task) or C0 (CPU): what printed it, if the kernel records that
    text: str
    continued: bool  # not the first line of its message


class Lines:
    """Remembers the stamp of the last message for continuation lines, which have none."""

    def __init__(self) -> None:
        self._time: float | str | None = None
        self._caller: str | None = None
        self._kernel = True
        self._escaped = False  # the last line was /dev/kmsg's or kern.log's
        self._syslog = False

    def messages(self, raw: bytes) -> list[Message]:
        """The messages in a line of the log, usually one; none if another program wrote it."""
        if b"\x1b" in raw:
            raw = _ANSI.sub(b"", raw)
        if b"\0" in raw:  # left by a crash, from blocks that were never written
            raw = raw.replace(b"\0", b"")
        text = raw[:LONGEST].decode("utf-8", "replace").rstrip("\r\n")
        match = _PLAIN.match(text)
        if match and "#0" not in text and not (text[0] == "[" and " kernel: " in text):
            self._time, self._caller = float(match[1]), match[2]
            self._kernel, self._escaped = True, False
            self._syslog = text[0] != "["
            return [Message(self._time, self._caller, _safe(text[match.end() :]), False)]
        continued = text.startswith((" ", "\t"))  # no prefix: it continues the previous message
        start = 0 if continued else self._prefix(text)
        if not self._kernel:
            return []
        messages = []
        for piece in self._split(text[start:]):
            if continued:
                piece = piece[self._stamps(piece, 0, keep=True) :]
            messages.append(Message(self._time, self._caller, _safe(piece), continued))
            continued = True
        return messages

    def _split(self, text: str) -> list[str]:
        if self._escaped and "\\x" in text:
            text = _unescape(text)
        elif self._syslog and "#0" in text:
            text = _OCTAL.sub(lambda match: chr(int(match[1], 8)), text)
        return text.split("\n") if "\n" in text else [text]

    def _prefix(self, text: str) -> int:
        """The index at which the message begins; sets the stamp and whether it is the kernel's."""
        self._time = self._caller = None
        self._kernel, self._escaped, self._syslog = True, False, False
        if text.startswith("["):
            if " kernel: " not in text or not (match := _SYSLOG.match(text)):
                self._escaped = bool(_OWN.match(text))
                return self._stamps(text, 0)
            self._time = float(match["seconds"])
            return self._stamps(text, match.end(), keep=True)
        if match := _KMSG.match(text):
            self._kernel = int(match["priority"]) < 8  # others: facilities of user space
            self._time, self._caller = int(match["usec"]) / 1e6, match["caller"]
            self._escaped = True
            return match.end()
        if match := _SYSLOG.match(text):
            self._time, self._syslog = match["wall"], True
            return self._stamps(text, match.end())
        if match := _WALLED.match(text):
            self._time = match["wall"]
            start = self._stamps(text, match.end())
            # dmesg --time-format=iso has a comma before the fraction, and no host name follows.
            self._kernel = isinstance(self._time, float) or "," in match["wall"]
            return start
        if match := _TAGGED.match(text):
            return self._stamps(text, match.end())
        return self._stamps(text, 0)

    def _stamps(self, text: str, start: int, *, keep: bool = False) -> int:
        """The index after the kernel's own stamps; keep: do not use their time."""
        while text.startswith(("[", "<", "k", "u", "d", "m", "a", "s", "l", "n", "c", "f"), start):
            match = _STAMP.match(text, start)
            if not match:
                break
            seconds, caller = match["seconds"], match["caller"] or match["id"]
            if match["facility"]:
                self._kernel = match["facility"] == "kern"
            if seconds and not keep and not isinstance(self._time, float):
                self._time = float(seconds)
            elif self._time is None:
                self._time = match["wall"] or match["minute"]
            self._caller = self._caller or caller
            start = match.end()
        return start


def _safe(text: str) -> str:
    return text if text.isprintable() else printable(text.replace("\t", " "))


def _unescape(text: str) -> str:
    raw = _ESCAPED.sub(lambda match: bytes([int(match[1], 16)]), text.encode("utf-8", "replace"))
    return raw.decode("utf-8", "replace")
