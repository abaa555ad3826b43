# SPDX-License-Identifier: GPL-2.0-or-later
"""Parses the values of options from text, on a command line and in plan.toml alike."""

import argparse
import re
from collections.abc import Callable
from pathlib import Path

Refused = argparse.ArgumentTypeError
LEAST_MEMORY = 128 << 20
OF_REMEDIES = ("trades", "idle")  # verdicts that only remedies get
VERDICTS = ("regressed", "improved", "equivalent", "undecided", *OF_REMEDIES)
FAIL_ON = (*VERDICTS, "failed", "unfinished")  # the last two are about runs
LABEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,63}")  # a label names a folder


def size(text: str) -> int:
    """Parse `512M`, `2G`, `80k` or `4096` into bytes (powers of 1,024)."""
    match = re.fullmatch(r"(\d+)([kKmMgGtT]?)(?:i?B)?", text)
    if not match or int(match[1]) == 0:
        raise Refused(f"not a size: {text!r} (for example 512M)")
    return int(match[1]) << {"": 0, "k": 10, "m": 20, "g": 30, "t": 40}[match[2].lower()]


def whole_mib(least: int) -> Callable[[str], int]:
    """A parser of sizes that are whole MiB, at least `least` MiB; it returns bytes."""

    def read(text: str) -> int:
        size_bytes = size(text)
        if size_bytes < least << 20 or size_bytes % (1 << 20):
            raise Refused(f"not whole MiB, {least}M or more: {text!r}")
        return size_bytes

    return read


def not_empty(text: str) -> str:
    """A name or a path; Refused if it is empty: an unset shell variable would mean this folder."""
    if not text:
        raise Refused("it is empty")
    return text


def is_utf8(text: str) -> bool:
    """Whether a word of the command line, or a file's name, can be written as UTF-8."""
    return not any("\ud800" <= letter <= "\udfff" for letter in text)


def sized(value: object) -> str:
    """A number of bytes in the spelling that `size` parses: 512M."""
    return f"{value >> 20}M" if isinstance(value, int) and value % 2**20 == 0 else str(value)


def path(text: str) -> Path:
    """The path with `~` expanded as by a shell; an unknown ~user is left as it is."""
    try:
        return Path(text).expanduser()
    except RuntimeError:
        return Path(text)


def count(text: str) -> int:
    """An integer of at least 1."""
    if not re.fullmatch(r"\d{1,9}", text) or int(text) < 1:
        raise Refused(f"not a number of 1 or more: {text!r}")
    return int(text)


def up_to(most: int) -> Callable[[str], int]:
    """A parser of integers from 1 to most."""

    def number(text: str) -> int:
        value = count(text)
        if value > most:
            raise Refused(f"at most {most}: {text!r}")
        return value

    return number


def memory(text: str) -> int:
    """A VM's memory in bytes, at least LEAST_MEMORY."""
    value = size(text)
    if value < LEAST_MEMORY:
        raise Refused(f"at least {LEAST_MEMORY >> 20}M: {text!r}")
    return value


def power_of_two(least: int, most: int) -> Callable[[str], int]:
    """A parser of powers of two from least to most."""

    def number(text: str) -> int:
        value = count(text)
        if not least <= value <= most or value & (value - 1):
            raise Refused(f"not a power of two from {least} to {most}: {text!r}")
        return value

    return number


def seconds_or_0(text: str) -> int:
    """An integer number of seconds; 0 means never."""
    return 0 if text == "0" else count(text)


def label(text: str) -> str:
    """A variant's label: letters, digits, `.`, `_`, `+` and `-`, at most 64 of them."""
    if not LABEL.fullmatch(text):
        raise Refused(f"not a label: {text!r} (letters, digits, '.', '_', '+', '-', at most 64)")
    return text


def baseline(text: str) -> str:
    """A variant's label, or its kernel in the spelling of --kernel."""
    return text if text.startswith("debian:") or "/" in text else label(text)


def fail_on(text: str) -> tuple[str, ...]:
    """Words of FAIL_ON, separated by commas."""
    words = tuple(dict.fromkeys(text.split(",")))
    if not set(words) <= set(FAIL_ON):
        raise Refused(f"not of {', '.join(FAIL_ON)}: {text[:200]!r}")
    return words


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return -1.0


def touch(text: str) -> float:
    """A ratio, 0 to 100."""
    value = _number(text)
    if not 0 <= value <= 100:
        raise Refused(f"not a number from 0 to 100: {text!r}")
    return value


def step(text: str) -> int:
    """An integer of at least 2."""
    value = count(text)
    if value < 2:
        raise Refused(f"not a whole number from 2 on: {text!r}")
    return value


def margin(text: str) -> float:
    """A ratio, more than 0 and less than 1."""
    value = _number(text)
    if not 0 < value < 1:
        raise Refused(f"not a ratio between 0 and 1: {text!r} (for example 0.1)")
    return value


def emulator(text: str) -> str:
    """`suite`, `host`, or the absolute path of a QEMU."""
    if text in ("suite", "host"):
        return text
    if "/" not in text:
        raise Refused(f"not suite, host or the path of a QEMU: {text!r}")
    return str(path(text).absolute())


def append(text: str) -> str:
    """Words for a kernel's command line: printable, on one line."""
    if not re.fullmatch(r"[ -~]{0,1000}", text):
        raise Refused(f"not for a command line: {text[:200]!r}")
    return " ".join(text.split())


def fitting(pattern: str, what: str) -> Callable[[str], str]:
    """A parser of text that fully matches the pattern; what: the noun of its error message."""

    def read(text: str) -> str:
        if not re.fullmatch(pattern, text):
            raise Refused(f"not {what}: {text[:200]!r}")
        return text

    return read


NAME = r"[a-z][a-z0-9-]{0,30}"
workload = fitting(NAME, "a workload")  # workloads.registry has the list
remedy = fitting(NAME, "a remedy")  # contract.remedy has the list
daemon = fitting(r"(?!.{401})[!-~]+( [!-~]+)*", "a daemon's command line")


def load(text: str) -> str:
    """A workload's own parameters, NAME=VALUE,…, sorted by name; no name twice."""
    words = sorted(text.split(",")) if text else []
    if not all(re.fullmatch(r"[a-z][a-z0-9-]*=[\w.]+", word) for word in words):
        raise Refused(f"not parameters: {text[:200]!r} (for example limit=50M,size=1G)")
    names = [word.partition("=")[0] for word in words]
    if len(set(names)) < len(names):
        raise Refused(f"given twice: {max(names, key=names.count)}")
    return ",".join(words)


def knob(text: str) -> tuple[str, str]:
    """Split PATH=VALUE into (path, value); the path is a file of /sys or /proc/sys."""
    path, equals, value = text.partition("=")
    inside = re.fullmatch(r"/(sys|proc/sys)/[\w./:@{}+-]+", path) and "/../" not in f"{path}/"
    if not (equals and inside and re.fullmatch(r"[ -~]{1,200}", value)):
        raise Refused(f"not a knob: {text[:200]!r} (for example /proc/sys/vm/swappiness=10)")
    return path, value


SUBTREE = "cgroup.subtree_control"
SCOPE_PER_PROGRAM = (SUBTREE, "+memory")
MANAGED_OOM = "ManagedOOM"


def slice(text: str) -> tuple[str, str]:
    """Split FILE=VALUE into (file, value): a file of a version 2 control group, `memory.low=50%`.

    A percentage is a share of the machine's memory. SCOPE_PER_PROGRAM gives each program a group of
    its own. Properties that begin with MANAGED_OOM (systemd.resource-control(5)) are sent to
    systemd-oomd, not written to a file.
    """
    file, _, value = text.partition("=")
    files = r"(memory|io|cpu)\.[a-z.]+=([\w ]+|100%|[1-9]?\d%)"
    properties = rf"{MANAGED_OOM}(Swap=kill|MemoryPressure=kill|MemoryPressureLimit=[1-9]\d?%)"
    if not re.fullmatch(rf"{files}|{re.escape('='.join(SCOPE_PER_PROGRAM))}|{properties}", text):
        raise Refused(
            f"not a control group's setting: {text[:200]!r} (for example memory.low=50%, or "
            f"{'='.join(SCOPE_PER_PROGRAM)}: a group for each program)"
        )
    return file, value
