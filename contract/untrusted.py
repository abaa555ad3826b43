# SPDX-License-Identifier: GPL-2.0-or-later
"""Reads untrusted JSON and TOML, or a file that a dying machine cut, in bounded time and memory.

Both parsers accept any nesting that fits on their stack, but code that walks the result does not;
tomllib's time and memory grow with the square of the number of parts of a dotted key.
"""

import json
import re
import tomllib
from typing import Any

DEEPEST = 32  # nesting of tables, objects and lists
MOST_PARTS = 32  # parts of a dotted key
LONGEST_WORD = 255  # characters of a bare key or of a number
LARGEST_TOML = 1 << 20  # characters: four thousand runs of a plan.toml
# An unterminated string matches to the end of its line or file, so that no text is read twice.
_WORD = r"[A-Za-z0-9_+-]++"
_BASIC = r'"(?:[^"\\\n]|\\[^\n])*+(?:"|(?=\\?(?:\n|\Z)))'
_LITERAL = r"'[^'\n]*+(?:'|(?=\n|\Z))"
_PART = re.compile(f"{_WORD}|{_BASIC}|{_LITERAL}")
_TOKEN = re.compile(
    r"#[^\n]*"
    r'|"""(?:[^\\"]|\\.|"(?!""))*+(?:"""|(?=\\?\Z))'
    r"|'''(?:[^']|'(?!''))*+(?:'''|\Z)"
    rf"|(?P<key>(?:{_PART.pattern})(?:[ \t]*+\.[ \t]*+(?:{_PART.pattern}))*+)",
    re.DOTALL,
)


def toml_tables(text: str) -> dict[str, Any]:
    """The tables of a TOML file; ValueError, in one line, if it is invalid or too large."""
    if len(text) > LARGEST_TOML:
        raise ValueError(f"has more than {LARGEST_TOML:,} characters")
    for token in _TOKEN.finditer(text):
        if token["key"] and len(token["key"]) > MOST_PARTS:
            _check_key(token["key"])
    try:
        tables = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(" ".join(str(error).split())) from None
    if not is_shallow(tables):
        raise ValueError(f"has tables or lists more than {DEEPEST} deep in each other")
    return tables


def _check_key(key: str) -> None:
    parts = _PART.findall(key)
    if len(parts) > MOST_PARTS:
        raise ValueError(f"has a key of {len(parts):,} parts, more than {MOST_PARTS}")
    if any(len(part) > LONGEST_WORD and re.fullmatch(_WORD, part) for part in parts):
        raise ValueError(f"has a word of more than {LONGEST_WORD} characters")


def json_object(raw: bytes | str) -> dict[str, Any] | None:
    """A JSON object; None if it is not one, or nested too deeply. NaN and Infinity become None."""
    try:
        value = json.loads(raw, parse_constant=lambda _: None)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) and is_shallow(value) else None


def is_shallow(value: object) -> bool:
    """Whether lists and dictionaries are nested at most DEEPEST deep."""
    level = [value]
    for _ in range(DEEPEST):
        level = [inner for outer in level for inner in _inside(outer)]
        if not level:
            return True
    return False


def _inside(value: object) -> list[Any]:
    if isinstance(value, dict):
        return [inner for inner in value.values() if isinstance(inner, dict | list)]
    return (
        [inner for inner in value if isinstance(inner, dict | list)]
        if isinstance(value, list)
        else []
    )
