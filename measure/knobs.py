# SPDX-License-Identifier: GPL-2.0-or-later
"""A variant's knobs: files of /sys and /proc/sys, set before the workload and put back after."""

import contextlib
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from errors import UserError, write_kernel_file

ROOT = Path("/")


def selected(text: str) -> str:
    """What a knob is set to, of what reading it gives: `none` of `[none] mq-deadline`."""
    chosen = re.search(r"\[([^\]]*)\]", text)
    return (chosen[1] if chosen else text).strip()


def took(asked: str, read: str) -> bool:
    """Whether a knob that was asked to be `asked` is so: 7 is 0x0007."""
    now = selected(read)
    if now == asked.strip():
        return True
    try:
        return int(now, 0) == int(asked, 0)
    except ValueError:
        return now.split() == asked.split()


@contextlib.contextmanager
def applied(
    knobs: Iterable[tuple[str, str]], devices: Mapping[str, str]
) -> Iterator[list[dict[str, str]]]:
    """Set each knob and read it back; on leaving all are as before.

    devices: name for {disk}, {crypt}, {swap}, {fs} in a path. Yields what meta.json says of each:
    `path`, `asked`, `before`, `read_back`. UserError if there is no such knob or it did not take
    its value.
    """
    done: list[dict[str, str]] = []
    try:
        for path, value in knobs:
            _set(path, value, devices, done)
        yield done
    finally:
        for knob in reversed(done):
            with contextlib.suppress(OSError):
                (ROOT / knob["path"][1:]).write_text(selected(knob["before"]))


def put_back(knobs: Iterable[Mapping[str, str]]) -> None:
    """Undo what a process that was killed could not: those that still read as it set them."""
    for knob in knobs:
        file = ROOT / knob["path"][1:]
        with contextlib.suppress(OSError):
            if file.read_text().strip() == knob["read_back"] != knob["before"]:
                file.write_text(selected(knob["before"]))


def _set(path: str, value: str, devices: Mapping[str, str], done: list[dict[str, str]]) -> None:
    try:
        real = path.format_map(devices)
    except (KeyError, ValueError, IndexError, AttributeError):
        raise UserError(
            f"knob {path}: its braces name no device", hint=f"there are {', '.join(devices)}"
        ) from None
    file = ROOT / real[1:]
    try:
        before = file.read_text().strip()
    except OSError as error:
        raise UserError(f"knob {real}: {error.strerror}", hint="this kernel has none") from None
    knob = {"path": real, "asked": value, "before": before, "read_back": before}
    done.append(knob)
    write_kernel_file(file, value, f"knob {real}")
    try:
        knob["read_back"] = after = file.read_text().strip()
    except OSError as error:
        raise UserError(f"knob {real}: {error.strerror}") from None
    if not took(value, after):
        raise UserError(
            f"knob {real}: did not take {value!r}, it reads {after!r}",
            hint="write a value as the knob reads it back",
        )
