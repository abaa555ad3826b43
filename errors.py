# SPDX-License-Identifier: GPL-2.0-or-later
"""The two kinds of failure: the user gets one line and a hint, a bug gets a traceback."""

import os
import signal
import sys
from collections.abc import Callable
from enum import IntEnum
from pathlib import Path


class Exit(IntEnum):
    """Exit statuses of run_test.sh and of every command of the suite."""

    OK = 0
    USAGE = 2
    MISSING = 3
    KERNEL_LOST = 4
    FAILED_ON = 5
    INTERRUPTED = 130


class UserError(Exception):
    """Something that the user can put right: one line that says what is wrong, and what to do."""

    def __init__(self, message: str, *, hint: str = "", status: Exit = Exit.MISSING) -> None:
        super().__init__(message)
        self.hint = hint
        self.status = status

    def __str__(self) -> str:
        message = super().__str__()
        return f"{message} ({self.hint})" if self.hint else message


def write_kernel_file(file: Path, text: str, what: str = "") -> None:
    """Write a file of /sys, /proc/sys or a cgroup; UserError if the kernel refuses the text."""
    try:
        file.write_text(text)
    except OSError as error:
        refused = f"{what or file}: the kernel refused {text!r}: {error.strerror}"
        raise UserError(refused) from None


def run_command(name: str, main: Callable[[], int]) -> int:
    """Run a command's main(): a UserError becomes one line on stderr and its exit status.

    So does a file that this user may not look at or touch, wherever it is met.

    Debian's ordinary users have no sbin in their PATH, where mke2fs, depmod and losetup are.
    """
    os.environ["PATH"] = os.environ.get("PATH", "/usr/bin:/bin") + ":/usr/sbin:/sbin"
    try:
        return main()
    except UserError as error:
        print(f"{name}: {error}", file=sys.stderr)
        return int(error.status)
    except PermissionError as error:
        if error.filename is None:
            raise
        hint = "not this user's to use"
        print(f"{name}: {error.filename}: {error.strerror} ({hint})", file=sys.stderr)
        return int(Exit.MISSING)
    except KeyboardInterrupt:
        print(f"{name}: interrupted", file=sys.stderr)
        return int(Exit.INTERRUPTED)
    except BrokenPipeError:
        # Whoever read our output has seen enough; Python's own flush at exit shall not complain.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 128 + signal.SIGPIPE
