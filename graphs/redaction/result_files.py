# SPDX-License-Identifier: GPL-2.0-or-later
"""The files of a result with tokens in place of secrets; no figure is ever touched.

Stamps and gaps of latency logs, cells of tables, and numbers of JSON and TOML stay byte by byte
(TOML and JSON: value by value) as they were. Only texts change.
"""

import json
import re
import tomllib
from collections.abc import Callable
from typing import Any

import tomli_w

from contract.run_files import CONFIG, LATENCY
from graphs.redaction.redact import Redactor

STAMPS = re.compile(rb"[0-9]{1,8}\.[0-9]{3} [0-9]{1,8}\.[0-9]{3}(?: |$)")
# What the suite's own programs print: nothing in it can be a secret.
OWN_LINE = (
    rb"[0-9]{1,8}\.[0-9]{3} [0-9]{1,8}\.[0-9]{3} "
    rb"(?:pass [0-9]+ commits [0-9]+|(?:chunk|beat) [0-9]+ late [0-9]+\.[0-9]+"
    rb"|echo [0-9]+ lost [0-9]+ missed [0-9]+|\[end\])\n"
)
OWN_LINES = re.compile(b"(?:" + OWN_LINE + b")*+")
OWN = re.compile(OWN_LINE)
# Numbers; of two dots and more it may be the name of a task that serves an address.
CELLS = re.compile(rb"[0-9.\t\n]*+")
CELL = re.compile(rb"[0-9]*+(?:\.[0-9]*+)?")
DOTS = re.compile(rb"\.[0-9]*+\.")
COUNTER = re.compile(rb"[A-Za-z0-9_()]*")  # a counter's name, as kernels spell them
SYMBOLS = re.compile(rb"[\w.$-]+(?: <- [\w.$-]+)*")  # a stack of the kernel's functions
KERNELS = (b"stack", b"wchan", b"gfp", b"state")  # columns of evidence that the kernel wrote
TASK = b"comm"  # the column of a task's name; an address as one is that of a server
SETTING = re.compile(r"(?:# )?(CONFIG_\w+)(?:=| is )")
QUOTED = re.compile(r'"(.*)"(\s*)', re.DOTALL)
Texts = Callable[[str], str]
Values = Callable[[Any, str], Any]  # of a value and its key


def redacted(name: str, raw: bytes, redactor: Redactor) -> bytes:
    """The content of a result's file of this name, redacted."""
    return _walk(name, raw, redactor.text, redactor.log, redactor.value)


def learn(name: str, raw: bytes, redactor: Redactor) -> None:
    """Show the file's texts to the redactor, before anything is redacted."""

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
    cells = [one if COUNTER.fullmatch(one) else _cell(one, text) for one in names]
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
    """JSON, parsed and written again if a text in it changed; what is none is a text."""
    try:
        found = json.loads(raw)
        changed = value(found, "")
        if changed == found:
            return raw
        end = b"\n" if raw.endswith(b"\n") else b""
        return json.dumps(changed, indent=indent).encode() + end
    except (ValueError, RecursionError):
        return _bytes(log(_text(raw)))


def _toml(raw: bytes, log: Texts, value: Values) -> bytes:
    try:
        found = tomllib.loads(raw.decode())
        changed = value(found, "")
        # A comment with a secret in it goes.
        is_clean = changed == found and log(_text(raw)) == _text(raw)
        return raw if is_clean else tomli_w.dumps(changed).encode()
    except (ValueError, RecursionError):
        return _bytes(log(_text(raw)))


def _config(raw: bytes, text: Texts, value: Values) -> bytes:
    """A kernel's .config: names of options stay, their values are texts, or what the name says."""
    lines = _text(raw).split("\n")
    for index, line in enumerate(lines):
        if '"' in line or not line.startswith(("CONFIG_", "# CONFIG_")):
            setting = SETTING.match(line)
            end = setting.end() if setting else 0
            if setting and (quoted := QUOTED.fullmatch(line, end)):
                before = re.sub(r'\\(["\\])', r"\1", quoted[1])
                after = str(value(before, setting[1]))
                same = quoted[1] if after == before else re.sub(r'(["\\])', r"\\\1", after)
                found = f'"{same}"{quoted[2]}'
            else:
                found = text(line[end:])
            lines[index] = line[:end] + found
    return _bytes("\n".join(lines))
