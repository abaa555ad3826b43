# SPDX-License-Identifier: GPL-2.0-or-later
"""A program's side of Stream.waits: programs finish starting up before the test begins."""

import os


def wait() -> None:
    """Print `ready` and return after a line on standard input; exit if that closes first."""
    os.write(1, b"ready\n")
    while not (line := os.read(0, 4096)).endswith(b"\n"):
        if not line:
            # The recorder is gone: nobody would read our output.
            raise SystemExit(1)
