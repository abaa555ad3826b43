# SPDX-License-Identifier: GPL-2.0-or-later
"""JSON for observers: the json module would cost them 1.3 MiB of locked memory."""

from __future__ import annotations


def to_json(value: object) -> str:
    """JSON of dicts, lists, strings, numbers, booleans and None, on one line."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{to_json(str(k))}: {to_json(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(to_json(item) for item in value) + "]"
    if isinstance(value, str):
        plain = value.replace("\\", "\\\\").replace('"', '\\"')
        return '"' + "".join(c if " " <= c <= "~" else _escape(ord(c)) for c in plain) + '"'
    if value is None or isinstance(value, bool):
        return {True: "true", False: "false", None: "null"}[value]
    return repr(value)


def _escape(code: int) -> str:
    if code < 0x10000:
        return f"\\u{code:04x}"
    code -= 0x10000
    return f"\\u{0xD800 + (code >> 10):04x}\\u{0xDC00 + (code & 0x3FF):04x}"
