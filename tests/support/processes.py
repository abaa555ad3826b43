# SPDX-License-Identifier: GPL-2.0-or-later
"""The processes of this machine, as /proc has them."""

import contextlib
from collections.abc import Iterator
from pathlib import Path


def processes() -> Iterator[tuple[int, list[bytes], list[bytes]]]:
    """The pid, the words and the environment of each process that may be read."""
    # No glob of the processes' files: it fails when a process ends meanwhile.
    for process in (entry for entry in Path("/proc").iterdir() if entry.name.isdigit()):
        with contextlib.suppress(OSError):
            words, environment = (
                (process / name).read_bytes().split(b"\0") for name in ("cmdline", "environ")
            )
            yield int(process.name), words, environment
