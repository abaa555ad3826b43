# SPDX-License-Identifier: GPL-2.0-or-later
"""One stream's bytes as the lines of its log: escaping, cutting, stamping.

docs/reference/results-format.md describes it. The recorder has the same in C, lines.c; this is for
latency_output.py, and to test that against.
"""

KEPT = 4096  # bytes kept of a line

_ESCAPES = {n: f"\\x{n:02x}" for n in (*range(0x20), *range(0x7F, 0x100))} | {0x5C: "\\\\"}


def escape(raw: bytes) -> str:
    """One line's bytes as printable ASCII; a program's `[end]` cannot pass for the last line."""
    text = raw.decode("latin-1")
    if not (text.isascii() and text.isprintable()) or "\\" in text:
        return text.translate(_ESCAPES)
    return text if text != "[end]" else "\\x5bend]"


class LineLog:
    """Cuts one stream's bytes into stamped lines; keeps at most KEPT bytes of an unfinished one.

    Gaps are differences of elapsed times in whole milliseconds, so they add up exactly.
    """

    def __init__(self, start_ns: int) -> None:
        self.lines = 0
        self._start_ns = start_ns
        self._last_ms = 0
        self._held = b""
        self._length = 0
        self._held_ms = 0

    def feed(self, chunk: bytes, now_ns: int) -> bytes:
        """Log text of the lines that this chunk, read at now_ns, brought to their end."""
        now_ms = self.ms(now_ns)
        parts = chunk.split(b"\n")
        tail = parts.pop()
        text = ""
        if parts:
            rest = iter(parts)
            if self._length:
                self._hold(next(rest))
                lines = [self._take()]
            else:
                lines = []
            for raw in rest:
                lines.append(escape(raw) if len(raw) <= KEPT else _cut(raw, len(raw)))
            self.lines += len(lines)
            text = self._stamp(now_ms) + lines[0] + "\n"
            if len(lines) > 1:
                stamp = f"{now_ms // 1000}.{now_ms % 1000:03d} 0.000 "
                text += stamp + f"\n{stamp}".join(lines[1:]) + "\n"
        if tail:
            self._hold(tail)
            self._held_ms = now_ms
        return text.encode()

    def end(self, now_ns: int) -> bytes:
        """Log text of an unfinished line, stamped when its last bytes came, and of the open gap."""
        text = ""
        if self._length:
            text = self._stamp(self._held_ms) + self._take() + "\n"
            self.lines += 1
        return (text + self._stamp(self.ms(now_ns)) + "[end]\n").encode()

    def ms(self, now_ns: int) -> int:
        return (now_ns - self._start_ns + 500_000) // 1_000_000

    def _stamp(self, ms: int) -> str:
        gap = ms - self._last_ms
        self._last_ms = ms
        return f"{ms // 1000}.{ms % 1000:03d} {gap // 1000}.{gap % 1000:03d} "

    def _hold(self, piece: bytes) -> None:
        self._length += len(piece)
        if len(self._held) < KEPT:
            self._held += piece[: KEPT - len(self._held)]

    def _take(self) -> str:
        held, length = self._held, self._length
        self._held, self._length = b"", 0
        return escape(held) if length <= KEPT else _cut(held, length)


def _cut(raw: bytes, length: int) -> str:
    return f"{escape(raw[:KEPT])}…[{length} bytes]"
