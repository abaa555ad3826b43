# SPDX-License-Identifier: GPL-2.0-or-later
"""A variant's knobs: files of /sys and /proc/sys, set before the workload and put back after."""

import contextlib
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from errors import UserError, write_kernel_file

ROOT = Path("/")


def selected(text: str) -> str:
    """The chosen value in the text of a knob's file: `none` of `[none] mq-deadline`."""
    chosen = re.search(r"\[([^\]]*)\]", text)
    return (chosen[1] if chosen else text).strip()


def took(wanted: str, text: str) -> bool:
    """Whether the text of a knob's file means the wanted value: 7 and 0x0007 are equal."""
    now = selected(text)
    if now == wanted.strip():
        return True
    try:
        return int(now, 0) == int(wanted, 0)
    except ValueError:
        return now.split() == wanted.split()


@contextlib.contextmanager
def applied(
    knobs: Iterable[tuple[str, str]], devices: Mapping[str, str]
) -> Iterator[list[dict[str, str]]]:
    """Set each knob and read it back; restore all of them on leaving.

    devices: the device names that replace {disk}, {crypt}, {swap}, {fs} in a path. Yields the facts
    about each knob for meta.json: `path`, `asked`, `before`, `read_back`. UserError if a knob does
    not exist or did not take its value.
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
    """Restore the knobs of a process that was killed, where they still have the values it set."""
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
            f"knob {path}: its braces name no device", hint=f"the devices are {', '.join(devices)}"
        ) from None
    file = ROOT / real[1:]
    try:
        before = file.read_text().strip()
    except OSError as error:
        raise UserError(f"knob {real}: {error.strerror}", hint="this kernel lacks it") from None
    knob = {"path": real, "asked": value, "before": before, "read_back": before}
    done.append(knob)
    write_kernel_file(file, value, f"knob {real}")
    try:
        knob["read_back"] = after = file.read_text().strip()
    except OSError as error:
        raise UserError(f"knob {real}: {error.strerror}") from None
    if not took(value, after):
        raise UserError(
            f"knob {real} did not take {value!r}: it now reads {after!r}",
            hint="give the value in the form in which the kernel shows it",
        )
