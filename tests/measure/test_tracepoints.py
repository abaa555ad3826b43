# SPDX-License-Identifier: GPL-2.0-or-later
"""The kernel's allocation flags, out of its format files: real ones of four kernels, and any."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from measure.tracepoints import Format, parse_format, print_flags, read_format

GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "tracing"
KERNELS = ["5.10", "6.1", "6.12", "7.2"]


@pytest.mark.parametrize("kernel", KERNELS)
def test_allocation_flags(kernel: str) -> None:
    text = (GOLDEN / f"{kernel}.format").read_text()
    format = parse_format(text)
    assert f"ID: {format.id}\n" in text
    flags = print_flags(format)
    assert len(flags) == len(re.findall(r'"\w+"}', format.print)) >= 35
    known = {"__GFP_HIGH": 0x20, "__GFP_IO": 0x40, "__GFP_FS": 0x80, "__GFP_NOWARN": 0x2000}
    assert {name: flags[name] for name in known} == known
    kernel_flags = flags["__GFP_IO"] | flags["__GFP_FS"] | flags["__GFP_RECLAIM"]
    assert flags["GFP_KERNEL"] == kernel_flags
    # As the kernel goes through the table: what has more bits comes first.
    assert list(flags).index("GFP_KERNEL") < list(flags).index("__GFP_IO")
    assert flags["GFP_TRANSHUGE_LIGHT"] & flags["__GFP_RECLAIM"] == 0


def test_flags_that_are_no_numbers_are_left_out() -> None:
    text = '__print_flags(x, "|", {(1 << NAME), "A"}, {__import__("os"), "B"}, {(1 << 3), "C"})'
    assert print_flags(Format(1, text)) == {"C": 8}
    assert print_flags(Format(1, '{((1UL) << (2, "A"}, {4u|, "B"}, {(), "C"}')) == {}


@given(st.integers(0, 65535), st.lists(st.from_regex(r"[a-z_ \[\]]{1,40}", fullmatch=True)))
def test_any_format(number: int, fields: list[str]) -> None:
    lines = [f"\tfield:{field};\toffset:8;\tsize:4;\tsigned:1;" for field in fields]
    text = "\n".join(["name: x", f"ID: {number}", "format:", *lines, '\nprint fmt: "x=%d", 1\n'])
    assert parse_format(text) == Format(number, '"x=%d", 1')


@given(st.text())
def test_any_text_is_a_format_or_a_value_error(text: str) -> None:
    try:
        format = parse_format(text)
    except ValueError:
        return
    print_flags(format)


def test_a_tracepoint_that_is_not_there(tmp_path: Path) -> None:
    assert read_format(str(tmp_path), "vmscan/none") is None
