# SPDX-License-Identifier: GPL-2.0-or-later
"""Figures and strangers' texts as words that fit a mail: plain, short, on one line."""

from textwrap import wrap

WIDTH = 75
NOT_AVAILABLE = "not available"
NUMBERS = (
    *("no", "one", "two", "three", "four", "five", "six"),
    *("seven", "eight", "nine", "ten", "eleven", "twelve"),
)


def plain(value: object, limit: int = 200) -> str:
    """A label, a file name, a log line: one line, no control characters, at most limit characters.

    Without a value "not available".
    """
    if value is None or isinstance(value, dict | list):
        return NOT_AVAILABLE
    text = " ".join(str(value)[: 4 * limit].split())
    text = "".join(char if char.isprintable() else "?" for char in text)
    return text if len(text) <= limit else text[: limit - 2] + ".."


def number_word(number: int) -> str:
    """'four' for 4; digits beyond twelve."""
    return NUMBERS[number] if 0 <= number < len(NUMBERS) else f"{number:,}"


def seconds(value: float) -> str:
    """'31.2 s'."""
    return f"{value:,.1f} s"


def mib(value: float | None) -> str:
    """'1,234.5 MiB'."""
    return NOT_AVAILABLE if value is None else f"{value:,.1f} MiB"


def plural(count: int, noun: str) -> str:
    """'1 skip', '2 skips'."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def paragraph(text: str, indent: str = "") -> list[str]:
    """The text in lines of at most WIDTH columns; later lines are indented."""
    return wrap(text, WIDTH, subsequent_indent=indent, break_on_hyphens=False) or [""]


def entry(name: str, text: str) -> list[str]:
    """'name         text', wrapped under the text."""
    return paragraph(f"{name:<12} {text}", " " * 13)
