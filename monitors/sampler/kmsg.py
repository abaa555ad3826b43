# SPDX-License-Identifier: GPL-2.0-or-later
"""The kernel's log from /dev/kmsg (Documentation/ABI/testing/dev-kmsg), as kern.log's lines.

A record of /dev/kmsg is `prio,seq,usec,flags[,…];text` and ` KEY=value` lines. The kernel escapes
whatever is not printable ASCII, and the backslash, as \\\\xNN; that stays, but an escaped newline
starts a continuation line, which begins with a blank.
"""

from __future__ import annotations

import os

MISSED = b"<missed>\n"
RECORD_BYTES = 16384


def parse(record: bytes) -> bytes | None:
    """One record of /dev/kmsg as lines `[seconds.micros] <level> text`; None if it is none."""
    head, found, body = record.partition(b";")
    fields = head.split(b",")
    if not found or len(fields) < 4:
        return None
    try:
        prio, usec = int(fields[0]), int(fields[2])
    except ValueError:
        return None
    if prio < 0 or usec < 0:
        return None
    text = body.rstrip(b"\n").replace(b"\n", b"\n ").replace(b"\n  ", b"\n ")
    if b"\\x0a" in text:
        text = text.replace(b"\\x0a", b"\n ")
    return b"[%d.%06d] <%d> %b\n" % (usec // 1_000_000, usec % 1_000_000, prio & 7, text)


class Kmsg:
    """Reads the kernel's ring without ever waiting: its whole past first, then what comes."""

    def __init__(self, path: str = "/dev/kmsg") -> None:
        """OSError if there is none, or if it may not be read."""
        self.fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        self.records = 0
        self.missed = 0

    def read(self, limit: int) -> tuple[bytes, bool]:
        """Lines of at most `limit` records, and whether the ring is now empty.

        A flood is taken in slices: what is not read now stays in the kernel's ring. What the ring
        has overwritten before it was read (EPIPE) stands as `<missed>`.
        """
        lines: list[bytes] = []
        for _ in range(limit):
            try:
                record = os.read(self.fd, RECORD_BYTES)
            except BlockingIOError:
                return b"".join(lines), True
            except BrokenPipeError:
                self.missed += 1
                lines.append(MISSED)
                continue
            except OSError:
                return b"".join(lines), True
            if not record:
                return b"".join(lines), True
            self.records += 1
            lines.append(parse(record) or b"")
        return b"".join(lines), False
