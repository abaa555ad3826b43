# SPDX-License-Identifier: GPL-2.0-or-later
"""The two kinds of failure: the user gets one line and a hint, a bug gets a traceback."""

import errno
import itertools
import os
import re
import signal
import sys
from collections.abc import Callable, Iterable
from enum import IntEnum
from pathlib import Path

NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)  # of a write

LOST = re.compile(r"--[^=]+=--|-[^-]--")


class Exit(IntEnum):
    """Exit statuses of run_test.sh and of every command of the suite."""

    OK = 0
    USAGE = 2
    MISSING = 3
    KERNEL_LOST = 4
    FAILED_ON = 5
    UNFINISHED = 6
    INTERRUPTED = 130


class UserError(Exception):
    """An error that the user can fix: one line that says what is wrong, and what to do."""

    def __init__(self, message: str, *, hint: str = "", status: Exit = Exit.MISSING) -> None:
        super().__init__(message)
        self.hint = hint
        self.status = status

    def __str__(self) -> str:
        message = super().__str__()
        return f"{message} ({self.hint})" if self.hint else message


def printable(text: str) -> str:
    """Text from a guest or a user made safe for a terminal: lines without escape sequences."""
    return "".join(letter if letter.isprintable() or letter == "\n" else "?" for letter in text)


def write_kernel_file(file: Path, text: str, what: str = "") -> None:
    """Write a file of /sys, /proc/sys or a cgroup; UserError if the kernel refuses the text."""
    try:
        file.write_text(text)
    except OSError as error:
        refused = f"{what or file}: the kernel refused {text!r}: {error.strerror}"
        raise UserError(refused) from None


def run_command(name: str, main: Callable[[], int]) -> int:
    """Run a command's main(); returns the exit status. A UserError becomes one line on stderr.

    So does any file that this user may not access.

    Adds sbin to PATH, which Debian's ordinary users lack: mke2fs, depmod and losetup are there.
    """
    os.environ["PATH"] = os.environ.get("PATH", "/usr/bin:/bin") + ":/usr/sbin:/sbin"
    _open_standard_files()
    try:
        if lost := lost_value(sys.argv[1:]):
            raise UserError(f"{lost}: '--' is not a value", status=Exit.USAGE)
        try:
            return main()
        finally:
            if sys.stdout is not None:
                sys.stdout.flush()
    except UserError as error:
        print(f"{name}: {printable(' '.join(str(error).splitlines()))}", file=sys.stderr)
        return int(error.status)
    except PermissionError as error:
        if error.filename is None:
            raise
        hint = "this user may not use it"
        message = f"{name}: {error.filename}: {error.strerror} ({hint})"
        print(printable(message), file=sys.stderr)
        return int(Exit.MISSING)
    except KeyboardInterrupt:
        print(f"{name}: interrupted", file=sys.stderr)
        return int(Exit.INTERRUPTED)
    except BrokenPipeError:
        _drop_output()  # the reader has ended, as `head` does
        return 128 + signal.SIGPIPE
    except OSError as error:
        if error.errno not in NO_ROOM:
            raise
        _drop_output()
        place = error.filename or "an output"
        print(printable(f"{name}: {place}: {error.strerror} (free some space)"), file=sys.stderr)
        return int(Exit.MISSING)


def lost_value(argv: Iterable[str]) -> str | None:
    """The first word that argparse would mistake for an option without a value: `--music=--`."""
    options = itertools.takewhile(lambda word: word != "--", argv)
    return next((word for word in options if LOST.fullmatch(word)), None)


def _open_standard_files() -> None:
    """Open closed standard files: the next opened file would get the number of such a one."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest number that is free


def _drop_output() -> None:
    """Redirect stdout to /dev/null, so that Python's flush at exit does not fail."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
