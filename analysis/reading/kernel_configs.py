# SPDX-License-Identifier: GPL-2.0-or-later
"""Compares the options of two kernel configs."""

import re

OPTION = re.compile(r"(CONFIG_\w+)=(.*)|# (CONFIG_\w+) is not set")
NOT_SET = "n"  # "is not set" and "not there" are the same to the kernel


def options(config: str) -> dict[str, str]:
    """Name -> value of the options that are set in the text of a .config."""
    values: dict[str, str] = {}
    for line in config.splitlines():
        match = OPTION.fullmatch(line)
        if match and match[1]:
            values[match[1]] = match[2]
    return values


def differences(base: str, other: str) -> list[tuple[str, str, str]]:
    """(option, base's value, other's value) of options that differ, by name; NOT_SET if not set."""
    before, after = options(base), options(other)
    return [
        (name, before.get(name, NOT_SET), after.get(name, NOT_SET))
        for name in sorted(before.keys() | after.keys())
        if before.get(name, NOT_SET) != after.get(name, NOT_SET)
    ]
