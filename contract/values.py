# SPDX-License-Identifier: GPL-2.0-or-later
"""How the value of each option is read from text, on a command line and in a plan.toml alike."""

import argparse
import re
from collections.abc import Callable
from pathlib import Path

Refused = argparse.ArgumentTypeError
LEAST_MEMORY = 128 << 20
OF_REMEDIES = ("trades", "idle")  # the verdicts that only remedies have
VERDICTS = ("regressed", "improved", "equivalent", "undecided", *OF_REMEDIES)
FAIL_ON = (*VERDICTS, "failed", "unfinished")  # the last two: a run was
LABEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,63}")  # a label names a folder


def size(text: str) -> int:
    """Bytes of `512M`, `2G`, `80k` or `4096` (powers of 1,024)."""
    match = re.fullmatch(r"(\d+)([kKmMgGtT]?)(?:i?B)?", text)
    if not match or int(match[1]) == 0:
        raise Refused(f"not a size: {text!r} (for example 512M)")
    return int(match[1]) << {"": 0, "k": 10, "m": 20, "g": 30, "t": 40}[match[2].lower()]


def whole_mib(least: int) -> Callable[[str], int]:
    """Bytes, of `least` MiB or more and no part of one."""

    def read(text: str) -> int:
        found = size(text)
        if found < least << 20 or found % (1 << 20):
            raise Refused(f"not whole MiB, {least}M or more: {text!r}")
        return found

    return read


def not_empty(text: str) -> str:
    """A name or a path: an empty one, as of a variable that is not set, would be this folder."""
    if not text:
        raise Refused("it is empty")
    return text


def is_utf8(text: str) -> bool:
    """Whether what came from the command line, or a file's name, can be written as UTF-8."""
    return not any("\ud800" <= one <= "\udfff" for one in text)


def sized(value: object) -> str:
    """Bytes as `size` takes them: 512M."""
    return f"{value >> 20}M" if isinstance(value, int) and value % 2**20 == 0 else str(value)


def path(text: str) -> Path:
    """The path that a shell would make of it; a ~user that nobody knows is a name like others."""
    try:
        return Path(text).expanduser()
    except RuntimeError:
        return Path(text)


def count(text: str) -> int:
    """A whole number of 1 or more."""
    if not re.fullmatch(r"\d{1,9}", text) or int(text) < 1:
        raise Refused(f"not a number of 1 or more: {text!r}")
    return int(text)


def up_to(most: int) -> Callable[[str], int]:
    """A whole number from 1 to most."""

    def number(text: str) -> int:
        found = count(text)
        if found > most:
            raise Refused(f"at most {most}: {text!r}")
        return found

    return number


def memory(text: str) -> int:
    """Bytes of a VM's memory."""
    found = size(text)
    if found < LEAST_MEMORY:
        raise Refused(f"at least {LEAST_MEMORY >> 20}M: {text!r}")
    return found


def power_of_two(least: int, most: int) -> Callable[[str], int]:
    """A power of two from least to most."""

    def number(text: str) -> int:
        found = count(text)
        if not least <= found <= most or found & (found - 1):
            raise Refused(f"not a power of two from {least} to {most}: {text!r}")
        return found

    return number


def seconds_or_0(text: str) -> int:
    """A whole number of seconds; 0 stands for never."""
    return 0 if text == "0" else count(text)


def label(text: str) -> str:
    """A variant's label: letters, digits, `.`, `_`, `+` and `-`, at most 64 of them."""
    if not LABEL.fullmatch(text):
        raise Refused(f"not a label: {text!r} (letters, digits, '.', '_', '+', '-', at most 64)")
    return text


def baseline(text: str) -> str:
    """A variant's label, or its kernel as --kernel takes it."""
    return text if text.startswith("debian:") or "/" in text else label(text)


def fail_on(text: str) -> tuple[str, ...]:
    """Words of FAIL_ON, with commas between them."""
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
    """A ratio from 0 to 100."""
    value = _number(text)
    if not 0 <= value <= 100:
        raise Refused(f"not a number from 0 to 100: {text!r}")
    return value


def step(text: str) -> int:
    """A whole number from 2 on."""
    value = count(text)
    if value < 2:
        raise Refused(f"not a whole number from 2 on: {text!r}")
    return value


def margin(text: str) -> float:
    """A ratio between 0 and 1."""
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
    """A text that the pattern matches whole; what: what others are not."""

    def read(text: str) -> str:
        if not re.fullmatch(pattern, text):
            raise Refused(f"not {what}: {text[:200]!r}")
        return text

    return read


NAME = r"[a-z][a-z0-9-]{0,30}"
workload = fitting(NAME, "a workload")  # which there are, workloads.registry knows
remedy = fitting(NAME, "a remedy")  # which there are, contract.remedy knows
daemon = fitting(r"(?!.{401})[!-~]+( [!-~]+)*", "a daemon's command line")


def load(text: str) -> str:
    """NAME=VALUE, … of a workload's own parameters, sorted by name; none twice."""
    words = sorted(text.split(",")) if text else []
    if not all(re.fullmatch(r"[a-z][a-z0-9-]*=[\w.]+", word) for word in words):
        raise Refused(f"not parameters: {text[:200]!r} (for example limit=50M,size=1G)")
    names = [word.partition("=")[0] for word in words]
    if len(set(names)) < len(names):
        raise Refused(f"given twice: {max(names, key=names.count)}")
    return ",".join(words)


def knob(text: str) -> tuple[str, str]:
    """(path, value) of PATH=VALUE; the path is a file of /sys or /proc/sys."""
    path, equals, value = text.partition("=")
    inside = re.fullmatch(r"/(sys|proc/sys)/[\w./:@{}+-]+", path) and "/../" not in f"{path}/"
    if not (equals and inside and re.fullmatch(r"[ -~]{1,200}", value)):
        raise Refused(f"not a knob: {text[:200]!r} (for example /proc/sys/vm/swappiness=10)")
    return path, value


def slice(text: str) -> tuple[str, str]:
    """(file, value) of FILE=VALUE: a control group's file of version 2, `memory.low=50%`.

    A share is of the machine's memory.
    """
    file, _, value = text.partition("=")
    if not re.fullmatch(r"(memory|io|cpu)\.[a-z.]+", file) or not re.fullmatch(
        r"[\w ]+|100%|[1-9]?\d%", value
    ):
        raise Refused(f"not a control group's setting: {text[:200]!r} (for example memory.low=50%)")
    return file, value
