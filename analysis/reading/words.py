# SPDX-License-Identifier: GPL-2.0-or-later
"""Formats numbers and texts of strangers: short, on one line, without control characters."""

from collections.abc import Sequence

from errors import printable

NOT_AVAILABLE = "not available"
NUMBERS = (
    *("no", "one", "two", "three", "four", "five", "six"),
    *("seven", "eight", "nine", "ten", "eleven", "twelve"),
)


def safe_line(value: object, limit: int = 200) -> str:
    """A label, a file name, a log line: one line, no control characters, at most limit characters.

    None, a dict or a list becomes "not available".
    """
    if value is None or isinstance(value, dict | list):
        return NOT_AVAILABLE
    text = printable(" ".join(str(value)[: 4 * limit].split()))
    return text if len(text) <= limit else text[: limit - 2] + ".."


def short_label(label: str, limit: int) -> str:
    """A variant's label in at most limit characters, without its middle: kernels differ at the
    beginning, remedies at the end."""
    text = safe_line(label)
    if len(text) <= limit:
        return text
    kept = max(0, limit - 2)
    return f"{text[: kept // 2]}..{text[len(text) - (kept - kept // 2) :]}"


def number_word(number: int) -> str:
    """'four' for 4; digits beyond twelve."""
    return NUMBERS[number] if 0 <= number < len(NUMBERS) else f"{number:,}"


def seconds(value: float) -> str:
    """'31.2 s' for 31.2 (seconds)."""
    return f"{value:,.1f} s"


def percent(value: float) -> str:
    """'84 %', from per cent; never '0 %' or '100 %' for a value that is only close to it."""
    if 0 < value < 1:
        return "less than 1 %"
    return "more than 99 %" if 99 < value < 100 else f"{value:.0f} %"


def mib(value: float | None) -> str:
    """'1,234.5 MiB' for 1234.5 (MiB); 'not available' for None."""
    return NOT_AVAILABLE if value is None else f"{value:,.1f} MiB"


def with_article(noun: str) -> str:
    """'a gitk', 'an editor'."""
    return f"{'an' if noun[:1].lower() in set('aeiou') else 'a'} {noun}"


def plural_subject(subject: str) -> str:
    """The plural: 'heartbeats', but 'gitk's', as Mel Gorman's mail writes it."""
    return f"{subject}'s" if subject == "gitk" else f"{subject}s"


def plural(count: int, noun: str) -> str:
    """'1 skip', '2 skips'."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def first_names(names: Sequence[str], most: int, limit: int = 4000) -> str:
    """'a, b, c and 4 more': the first `most` names, in at most `limit` characters."""
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return safe_line(", ".join(names[:most]), limit) + more
