# SPDX-License-Identifier: GPL-2.0-or-later
"""The two implementations of a log's lines, monitors/lines.c and lines.py: the same bytes."""

import struct
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from monitors.lines import KEPT, LineLog
from tests.support.observers import Driven, driver

BEGIN, END = -1, -2


@pytest.fixture(scope="module")
def lines_c() -> Iterator[Driven]:
    """lines.c."""
    with Driven(driver("lines_driver", "lines.c", "text.c")) as started:
        yield started


def in_c(
    lines_c: Driven, start_ns: int, chunks: list[tuple[bytes, int]], end_ns: int
) -> tuple[bytes, int]:
    """The log of these chunks, each read at its moment, and how many lines it counted."""
    said = [struct.pack("=qq", BEGIN, start_ns)]
    said += [struct.pack("=qq", len(chunk), now) + chunk for chunk, now in chunks]
    lines_c.tell(b"".join(said) + struct.pack("=qq", END, end_ns))
    size, lines = struct.unpack("=qq", lines_c.data(16))
    return lines_c.data(size), lines


def in_python(start_ns: int, chunks: list[tuple[bytes, int]], end_ns: int) -> tuple[bytes, int]:
    log = LineLog(start_ns)
    text = b"".join(log.feed(chunk, now) for chunk, now in chunks)
    return text + log.end(end_ns), log.lines


piece = st.one_of(
    st.binary(max_size=40),
    st.text(st.characters(min_codepoint=0x20, max_codepoint=0x7F), max_size=40).map(str.encode),
    st.sampled_from([b"\n", b"[end]", b"[end]\n", b"\\", b"\n\n\n", b"\r\n", b"[end] "]),
    st.builds(
        lambda byte, size: bytes([byte]) * size,
        st.integers(0, 255),
        st.integers(KEPT - 2, KEPT + 2),
    ),
)
pauses = st.integers(0, 3 * 10**9) | st.integers(0, 10**15) | st.integers(499_998, 500_002)


@settings(max_examples=500, deadline=None)
@given(
    st.integers(0, 2**62),
    st.lists(st.tuples(st.lists(piece, max_size=5).map(b"".join), pauses), max_size=12),
    pauses,
)
def test_both_write_the_same_bytes(
    lines_c: Driven, start: int, parts: list[tuple[bytes, int]], last: int
) -> None:
    chunks = []
    now = start
    for chunk, pause in parts:
        now += pause
        chunks.append((chunk, now))
    wanted = in_python(start, chunks, now + last)
    assert in_c(lines_c, start, chunks, now + last) == wanted


@pytest.mark.parametrize("size", [1, 7, 8, 9, 15, 16, 17])
def test_each_odd_byte_is_seen_at_each_place(lines_c: Driven, size: int) -> None:
    lines = [
        b"x" * at + bytes([byte]) + b"~" * (size - at - 1)
        for at in range(size)
        for byte in range(256)
    ]
    data = b"\n".join(lines)
    assert in_c(lines_c, 0, [(data, 5)], 9) == in_python(0, [(data, 5)], 9)


@pytest.mark.parametrize("piece", [1000, 4096, 65536])
def test_a_long_line_in_pieces(lines_c: Driven, piece: int) -> None:
    data = b"x" * KEPT + b"\xff" * 300_000 + b"\nshort\n" + b"z" * 5000
    chunks = [(data[i : i + piece], i) for i in range(0, len(data), piece)]
    assert in_c(lines_c, 0, chunks, len(data)) == in_python(0, chunks, len(data))


def test_nothing_becomes_longer_than_is_rehearsed(lines_c: Driven) -> None:
    # The driver checks it at each chunk.
    chunks = [(b"\xff" * KEPT, 1), (b"\n" * 512, 9 * 10**18), (b"\xff" * 9000 + b"\n", 9 * 10**18)]
    assert in_c(lines_c, 0, chunks, 9 * 10**18) == in_python(0, chunks, 9 * 10**18)
