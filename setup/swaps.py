# SPDX-License-Identifier: GPL-2.0-or-later
"""All other swap off for the test, and on again after it with the priorities it had."""

from pathlib import Path

from errors import UserError
from setup.device_check import same, swaps
from setup.mapper import run

# swapoff reads everything back in, on a slow disk and with little memory.
PATIENCE_S = 900


def others(ours: str) -> list[list[str | int]]:
    """[path, priority] of each swap that is on and is not ours, in the order of /proc/swaps."""
    return [[path, priority] for path, priority in swaps() if not same(path, ours)]


def refuse_unrestorable(found: list[list[str | int]]) -> None:
    """Raise a UserError for a swap that could not be turned on again: its file was deleted."""
    for path, _priority in found:
        if not Path(str(path)).exists():
            raise UserError(f"swap {path} could not be turned on again after the test")


def turn_off(found: list[list[str | int]]) -> None:
    """Turn these swaps off."""
    for path, _priority in found:
        run("swapoff", str(path), timeout=PATIENCE_S)


def restore(found: list[list[str | int]]) -> None:
    """Turn these swaps on again.

    A negative priority was given by the kernel in order of swapon: highest first gives it again.
    """
    problems = []
    for path, priority in sorted(found, key=lambda entry: -int(entry[1])):
        if is_on(str(path)):
            continue
        wanted = ["-p", str(priority)] if int(priority) >= 0 else []
        try:
            run("swapon", *wanted, str(path))
        except UserError as error:
            problems.append(str(error))
    if problems:
        raise UserError("; ".join(problems))


def is_on(path: str) -> bool:
    """True if path is in use as swap."""
    return any(same(other, path) for other, _priority in swaps())


def turn_on(path: str) -> None:
    """Turn the swap on path on, unless it is."""
    if not is_on(path):
        run("swapon", path)


def turn_off_ours(path: str) -> None:
    """Turn the swap on path off, if it is on."""
    if is_on(path):
        run("swapoff", path, timeout=PATIENCE_S)
