# SPDX-License-Identifier: GPL-2.0-or-later
"""A program's side of Stream.waits: start-up is over before the test begins."""

import os


def wait() -> None:
    """Print `ready` and return when a line comes on standard input; its end alone ends us."""
    os.write(1, b"ready\n")
    while not (said := os.read(0, 4096)).endswith(b"\n"):
        if not said:
            # The recorder is gone: nobody would hear what we have to say.
            raise SystemExit(1)
