# SPDX-License-Identifier: GPL-2.0-or-later
"""An observer's talk with its runner: orders on standard input, JSON lines on standard output."""

from __future__ import annotations

import os

from monitors.plain_json import to_json


class RunnerChannel:
    """Lines on fd 0: `t0 SECONDS` (CLOCK_MONOTONIC). Its end, or SIGTERM, asks us to end."""

    def __init__(self) -> None:
        self.ended = False
        self.wake, self._woken = os.pipe()
        self._held = b""

    def read(self) -> float | None:
        """Take what has come: t0 if it was told; `ended` is then true if there is no more."""
        data = os.read(0, 4096)
        if not data:
            self.ended = True
        self._held += data
        *lines, self._held = self._held.split(b"\n")
        told = None
        for line in lines:
            words = line.split()
            if len(words) == 2 and words[0] == b"t0":
                told = float(words[1])
        return told

    def stop(self, *_: object) -> None:
        """The handler of SIGTERM: whoever polls `wake` wakes up."""
        self.ended = True
        os.write(self._woken, b"x")


def say(facts: dict[str, object]) -> None:
    """One JSON line on stdout; a parent that is gone does not matter."""
    try:  # noqa: SIM105 (contextlib is 0.3 MiB of locked memory)
        os.write(1, to_json(facts).encode() + b"\n")
    except OSError:
        pass
