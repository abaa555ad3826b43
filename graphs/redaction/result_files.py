# SPDX-License-Identifier: GPL-2.0-or-later
"""Redacts the files of a result; figures never change.

Time stamps and gaps of latency logs, cells of tables, and numbers of JSON and TOML stay the same,
byte by byte (TOML and JSON: value by value). Only texts change.
"""

import json
import re
from collections.abc import Callable
from typing import Any

import tomli_w

from contract.run_files import CONFIG, LATENCY
from contract.untrusted import toml_tables
from graphs.redaction.redact import Redactor

STAMPS = re.compile(rb"[0-9]{1,8}\.[0-9]{3} [0-9]{1,8}\.[0-9]{3}(?: |$)")
# Lines of the suite's own programs, which cannot contain secrets.
OWN_LINE = (
    rb"[0-9]{1,8}\.[0-9]{3} [0-9]{1,8}\.[0-9]{3} "
    rb"(?:pass [0-9]+ commits [0-9]+|(?:chunk|beat) [0-9]+ late [0-9]+\.[0-9]+"
    rb"|echo [0-9]+ lost [0-9]+ missed [0-9]+|\[end\])\n"
)
OWN_LINES = re.compile(b"(?:" + OWN_LINE + b")*+")
OWN = re.compile(OWN_LINE)
# Numbers; with two or more dots it may be the name of a task that serves an address.
CELLS = re.compile(rb"[0-9.\t\n]*+")
CELL = re.compile(rb"[0-9]*+(?:\.[0-9]*+)?")
DOTS = re.compile(rb"\.[0-9]*+\.")
COUNTER = re.compile(rb"[A-Za-z0-9_()]*")  # a counter's name, as kernels spell them
SYMBOLS = re.compile(rb"[\w.$-]+(?: <- [\w.$-]+)*")  # a stack of the kernel's functions
KERNELS = (b"stack", b"wchan", b"gfp", b"state")  # evidence columns that the kernel writes
TASK = b"comm"  # column of a task's name; if the name is an address, it is a server's
SETTING = re.compile(r"(?:# )?(CONFIG_\w+)(?:=| is )")
QUOTED = re.compile(r'"(.*)"(\s*)', re.DOTALL)
Texts = Callable[[str], str]
Values = Callable[[Any, str], Any]  # (value, key) -> value


def redacted(name: str, raw: bytes, redactor: Redactor) -> bytes:
    """The content of a result file with this name, redacted."""
    return _walk(name, raw, redactor.text, redactor.log, redactor.value)


def learn(name: str, raw: bytes, redactor: Redactor) -> None:
    """Let the redactor learn from the file's texts, before anything is redacted."""

    def text(found: str) -> str:
        redactor.learn(found)
        return found

    def log(found: str) -> str:
        redactor.learn_log(found)
        return found

    def value(found: Any, key: str) -> Any:
        redactor.learn_value(found, key)
        return found

    _walk(name, raw, text, log, value)


def _walk(name: str, raw: bytes, text: Texts, log: Texts, value: Values) -> bytes:
    if name.startswith(LATENCY):
        return _latency(raw, text)
    if name.endswith(".tsv"):
        return _table(raw, text, value)
    if name.endswith(".jsonl"):
        lines = raw.split(b"\n")
        return b"\n".join(_json(line, text, value, None) if line else line for line in lines)
    if name.endswith(".json"):
        return _json(raw, log, value, 1)
    if name.endswith(".toml"):
        return _toml(raw, log, value)
    if name == CONFIG:
        return _config(raw, text, value)
    return _bytes(log(_text(raw)))


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "surrogateescape")


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _latency(raw: bytes, text: Texts) -> bytes:
    if OWN_LINES.fullmatch(raw):
        return raw
    lines = raw.split(b"\n")
    for index, line in enumerate(lines):
        if not OWN.fullmatch(line + b"\n"):
            stamps = STAMPS.match(line)
            end = stamps.end() if stamps else 0
            lines[index] = line[:end] + _bytes(text(_text(line[end:])))
    return b"\n".join(lines)


def _table(raw: bytes, text: Texts, value: Values) -> bytes:
    header, newline, body = raw.partition(b"\n")
    names = header.split(b"\t")
    cells = [head if COUNTER.fullmatch(head) else _cell(head, text) for head in names]
    if DOTS.search(body) or not CELLS.fullmatch(body):
        kept = {place for place, name in enumerate(names) if name in KERNELS}
        tasks = {place for place, name in enumerate(names) if name == TASK}

        def task(name: str) -> str:
            return str(value(name, "address"))

        body = b"\n".join(
            b"\t".join(
                cell
                if place in kept and SYMBOLS.fullmatch(cell)
                else _cell(cell, task if place in tasks else text)
                for place, cell in enumerate(row.split(b"\t"))
            )
            for row in body.split(b"\n")
        )
    return b"\t".join(cells) + newline + body


def _cell(cell: bytes, text: Texts) -> bytes:
    return cell if CELL.fullmatch(cell) else _bytes(text(_text(cell)))


def _json(raw: bytes, log: Texts, value: Values, indent: int | None) -> bytes:
    """JSON, parsed and written again if a text changed; anything else is treated as text."""
    try:
        content = json.loads(raw)
        changed = value(content, "")
        if changed == content:
            return raw
        end = b"\n" if raw.endswith(b"\n") else b""
        return json.dumps(changed, indent=indent).encode() + end
    except (ValueError, RecursionError):
        return _bytes(log(_text(raw)))


def _toml(raw: bytes, log: Texts, value: Values) -> bytes:
    try:
        content = toml_tables(raw.decode())
        changed = value(content, "")
        # Comments with secrets are removed, by writing the file again.
        is_clean = changed == content and log(_text(raw)) == _text(raw)
        return raw if is_clean else tomli_w.dumps(changed).encode()
    except (ValueError, RecursionError):
        return _bytes(log(_text(raw)))


def _config(raw: bytes, text: Texts, value: Values) -> bytes:
    """A kernel's .config: option names stay; values are redacted as texts or by the name."""
    lines = _text(raw).split("\n")
    for index, line in enumerate(lines):
        if '"' in line or not line.startswith(("CONFIG_", "# CONFIG_")):
            setting = SETTING.match(line)
            end = setting.end() if setting else 0
            if setting and (quoted := QUOTED.fullmatch(line, end)):
                before = re.sub(r'\\(["\\])', r"\1", quoted[1])
                after = str(value(before, setting[1]))
                same = quoted[1] if after == before else re.sub(r'(["\\])', r"\\\1", after)
                replaced = f'"{same}"{quoted[2]}'
            else:
                replaced = text(line[end:])
            lines[index] = line[:end] + replaced
    return _bytes("\n".join(lines))
