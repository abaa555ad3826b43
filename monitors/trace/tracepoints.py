# SPDX-License-Identifier: GPL-2.0-or-later
"""What this kernel's tracepoints look like: the `format` files of its tracefs."""

from __future__ import annotations

import os

PLACES = ("/sys/kernel/tracing", "/sys/kernel/debug/tracing")
WANTED = (
    "vmscan/mm_vmscan_direct_reclaim_begin",
    "vmscan/mm_vmscan_direct_reclaim_end",
    "vmscan/mm_vmscan_memcg_reclaim_begin",
    "vmscan/mm_vmscan_memcg_reclaim_end",
    "vmscan/mm_vmscan_kswapd_wake",
    "vmscan/mm_vmscan_kswapd_sleep",
    "vmscan/mm_vmscan_throttled",
    "writeback/writeback_congestion_wait",
    "writeback/writeback_wait_iff_congested",
    "compaction/mm_compaction_begin",
    "compaction/mm_compaction_end",
    "kmem/mm_page_alloc",
)
CASTS = ("( unsigned long)", "(unsigned long)", "( gfp_t)", "(gfp_t)", "(__force gfp_t)")
SUFFIXES = dict.fromkeys(map(ord, "uUlL"))
OPERATORS = ("|", "&", "<<")  # C's, those that bind least first
MOST_BITS = 64
REASON = '"VMSCAN_THROTTLE_'

# Where a value is in a tracepoint's record: offset, size, whether it is signed.
Field = tuple[int, int, bool]


class Format:
    """One tracepoint: its id, its fields, and how its record is printed."""

    def __init__(self, id: int, fields: dict[str, Field], printed: str) -> None:
        self.id = id
        self.fields = fields
        self.print = printed

    def field(self, name: str) -> Field:
        """Where a field is; LookupError says that there is none."""
        if name not in self.fields:
            raise LookupError(f"no field {name}")
        return self.fields[name]


def parse_format(text: str) -> Format:
    """Read a format file; ValueError if it has no id."""
    number = -1
    fields: dict[str, Field] = {}
    head, _, printed = text.partition("\nprint fmt: ")
    for line in head.split("\n"):
        if line.startswith("ID: "):
            number = int(line[4:])
        elif line.startswith("\tfield:"):
            # field:unsigned char comm[16];	offset:8;	size:16;	signed:0;
            declared, *numbers = line[7:].split(";")
            if declared.endswith("]"):
                declared = declared.rpartition("[")[0]
            places = [int(part.partition(":")[2]) for part in numbers if part.strip()]
            if declared.strip() and len(places) >= 3:
                fields[declared.split()[-1]] = places[0], places[1], places[2] == 1
    if number < 0:
        raise ValueError("a format file without an ID")
    return Format(number, fields, printed.strip())


def find_tracefs(root: str = "") -> str | None:
    """Where tracefs is mounted; None if it is not, or not for us."""
    for place in PLACES:
        if os.access(f"{root}{place}/events", os.R_OK | os.X_OK):
            return root + place
    return None


def read_format(tracefs: str, name: str) -> Format | None:
    """The format of a tracepoint (`vmscan/mm_vmscan_throttled`); None if this kernel has none."""
    try:
        with open(f"{tracefs}/events/{name}/format", encoding="ascii", errors="replace") as handle:
            return parse_format(handle.read())
    except (OSError, ValueError):
        return None


def print_flags(format: Format) -> dict[str, int]:
    """The names and values of a __print_flags table, in its order; those it does not say are left
    out.

    A value of several bits (GFP_KERNEL) comes before those of which it is made, as the kernel goes
    through them: it prints each that is there whole, and takes its bits away.
    """
    found = {}
    for part in format.print.split("{")[1:]:
        # {( unsigned long)((( gfp_t)0x400u)), "__GFP_IO"}
        value, quote, rest = part.partition(', "')
        name, end, _ = rest.partition('"')
        if quote and end:
            try:
                found[name] = _constant(value)
            except (ValueError, RecursionError):
                continue
    return found


def _constant(text: str) -> int:
    """The value of a constant expression of C, of casts, numbers, |, &, ~, << and parentheses.

    ValueError if it holds anything else.
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
    """Take the longest operation that binds as OPERATORS[level] or closer from the words."""
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


def throttle_reasons(format: Format) -> dict[str, int]:
    """Reasons of mm_vmscan_throttled, in lower case, and the value of its field for each;
    LookupError if it names none.

    The print format names enum vmscan_throttle_state without its numbers, but in its order; the
    field holds 1 << number. Of VMSCAN_THROTTLE_NONE (0) there is no event.
    """
    names = [part.partition('"')[0].lower() for part in format.print.split(REASON)[1:]]
    if not names:
        raise LookupError("no names of its reasons")
    return {name: 1 << number for number, name in enumerate(n for n in names if n != "none")}
