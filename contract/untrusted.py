# SPDX-License-Identifier: GPL-2.0-or-later
"""JSON and TOML that somebody else wrote, or a dying machine cut: read in bounded time and memory.

Both parsers take any nesting that fits on their stack, and code that walks what they found does
not; tomllib takes time and memory by the square of the parts of a dotted key.
"""

import json
import re
import tomllib
from typing import Any

DEEPEST = 32  # tables, objects and lists within each other
MOST_PARTS = 32  # of a dotted key
LONGEST_WORD = 255  # characters of a bare key or of a number
LARGEST_TOML = 1 << 20  # characters: four thousand runs of a plan.toml
# A text that nothing ends reaches to the end of its line or file, so that none is read twice.
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
    """The tables of a TOML file; ValueError, in one line, if it is none or beyond the bounds."""
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
    if any(len(one) > LONGEST_WORD and re.fullmatch(_WORD, one) for one in parts):
        raise ValueError(f"has a word of more than {LONGEST_WORD} characters")


def json_object(raw: bytes | str) -> dict[str, Any] | None:
    """One JSON object; None if it is none, or nested too deeply. NaN and Infinity become null."""
    try:
        value = json.loads(raw, parse_constant=lambda _: None)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) and is_shallow(value) else None


def is_shallow(value: object) -> bool:
    """Whether no more than DEEPEST lists and dictionaries are within each other."""
    level = [value]
    for _ in range(DEEPEST):
        level = [inner for outer in level for inner in _inside(outer)]
        if not level:
            return True
    return False


def _inside(value: object) -> list[Any]:
    if isinstance(value, dict):
        return [one for one in value.values() if isinstance(one, dict | list)]
    return [one for one in value if isinstance(one, dict | list)] if isinstance(value, list) else []
