# SPDX-License-Identifier: GPL-2.0-or-later
"""The observers' text: what they write of numbers and of bytes that others made."""

import json
import struct
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitors.lines import escape
from tests.support.observers import Driven, driver


@pytest.fixture(scope="module")
def text() -> Iterator[Driven]:
    """text.c."""
    with Driven(driver("text_driver", "text.c")) as started:
        yield started


def made(text: Driven, letter: bytes, data: bytes) -> bytes:
    """What is made of the data."""
    text.tell(struct.pack("<i", len(data)) + data + letter)
    (size,) = struct.unpack("<i", text.data(4))
    return text.data(size)


@given(st.binary(max_size=300) | st.sampled_from([b"[end]", b"[end", b"x[end]"]))
def test_a_line_is_escaped_alike_in_c(text: Driven, raw: bytes) -> None:
    assert made(text, b"e", raw).decode() == escape(raw)


@given(st.text(st.characters(codec="utf-8", exclude_characters="\0")))
def test_a_json_string_is_the_string(text: Driven, string: str) -> None:
    found = made(text, b"j", string.encode()).decode()
    assert json.loads(found) == string and found.isascii() and found.isprintable()


@given(st.binary())
def test_any_bytes_make_a_json_string(text: Driven, raw: bytes) -> None:
    raw = raw.replace(b"\0", b"")
    found = json.loads(made(text, b"j", raw))
    assert isinstance(found, str)
    if "\ufffd" not in found:
        assert found.encode() == raw


@given(st.integers(-(10**15), 10**15))
def test_seconds_are_rounded_to_the_nearest_millisecond(text: Driven, ns: int) -> None:
    found = made(text, b"s", str(ns).encode()).decode()
    whole, _, fraction = found.partition(".")
    assert len(fraction) == 3 and whole.lstrip("-").isdigit()
    assert abs(int(whole + fraction) * 1_000_000 - ns) <= 500_000


@given(st.integers(-(2**63), 2**63 - 1))
def test_numbers(text: Driven, number: int) -> None:
    assert made(text, b"n", str(number).encode()) == str(number).encode()
