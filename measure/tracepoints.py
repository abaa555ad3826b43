# SPDX-License-Identifier: GPL-2.0-or-later
"""Reads what the kernel records at a tracepoint: the `format` files of its tracefs."""

from __future__ import annotations

import os
from dataclasses import dataclass

PLACES = ("/sys/kernel/tracing", "/sys/kernel/debug/tracing")
CASTS = ("( unsigned long)", "(unsigned long)", "( gfp_t)", "(gfp_t)", "(__force gfp_t)")
SUFFIXES = dict.fromkeys(map(ord, "uUlL"))
OPERATORS = ("|", "&", "<<")  # of C, those that bind least first
MOST_BITS = 64
PAGE_ALLOC = "kmem/mm_page_alloc"


@dataclass(frozen=True)
class Format:
    """One tracepoint: its id, and how its record is printed."""

    id: int
    print: str


def parse_format(text: str) -> Format:
    """Read a format file; ValueError if it has no id."""
    head, _, printed = text.partition("\nprint fmt: ")
    for line in head.split("\n"):
        if line.startswith("ID: "):
            return Format(int(line[4:]), printed.strip())
    raise ValueError("a format file without an ID")


def find_tracefs() -> str | None:
    """Where tracefs is mounted; None if it is not mounted or this user may not read it."""
    for place in PLACES:
        if os.access(f"{place}/events", os.R_OK | os.X_OK):
            return place
    return None


def read_format(tracefs: str, name: str) -> Format | None:
    """The format of a tracepoint (`vmscan/mm_vmscan_throttled`); None if this kernel lacks it."""
    try:
        with open(f"{tracefs}/events/{name}/format", encoding="ascii", errors="replace") as handle:
            return parse_format(handle.read())
    except (OSError, ValueError):
        return None


def gfp_flags() -> dict[str, int]:
    """The names and bit values of the allocation flags, ordered as print_flags() does.

    Empty without tracefs.
    """
    tracefs = find_tracefs()
    format = read_format(tracefs, PAGE_ALLOC) if tracefs else None
    return print_flags(format) if format else {}


def print_flags(format: Format) -> dict[str, int]:
    """The names and bit values of a __print_flags table, in its order; flags without a value that
    can be read are left out.

    A value of several bits (GFP_KERNEL) comes before its parts, as the kernel tests them in this
    order: it prints each value all of whose bits are set, and clears these bits.
    """
    flags = {}
    for part in format.print.split("{")[1:]:
        # {( unsigned long)((( gfp_t)0x400u)), "__GFP_IO"}
        value, quote, rest = part.partition(', "')
        name, end, _ = rest.partition('"')
        if quote and end:
            try:
                flags[name] = _constant(value)
            except (ValueError, RecursionError):
                continue
    return flags


def _constant(text: str) -> int:
    """The value of a constant C expression made of casts, numbers, |, &, ~, << and parentheses.

    ValueError if the text has anything else.
    """
    for cast in CASTS:
        text = text.replace(cast, "")
    for sign in (*OPERATORS, "~", "(", ")"):
        text = text.replace(sign, f" {sign} ")
    words = text.split()
    value = _operation(words, 0)
    if words:
        raise ValueError(f"{words[0]} is left over")
    return value


def _operation(words: list[str], level: int) -> int:
    """Take the longest operation that binds at least as OPERATORS[level] from the words.

    Returns its value.
    """
    if level == len(OPERATORS):
        return _operand(words)
    value = _operation(words, level + 1)
    while words and words[0] == OPERATORS[level]:
        sign = words.pop(0)
        right = _operation(words, level + 1)
        if sign == "<<" and not 0 <= right < MOST_BITS:
            raise ValueError(f"a shift by {right}")
        value = value | right if sign == "|" else value & right if sign == "&" else value << right
    return value


def _operand(words: list[str]) -> int:
    word = words.pop(0) if words else ""
    if word == "~":
        return ~_operand(words)
    if word != "(":
        return int(word.translate(SUFFIXES), 0)
    value = _operation(words, 0)
    if not words or words.pop(0) != ")":
        raise ValueError("a parenthesis is not closed")
    return value
