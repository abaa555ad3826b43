# SPDX-License-Identifier: GPL-2.0-or-later
"""SIGINT, SIGTERM and SIGHUP as a wish to stop, of a command that has something to end first."""

import contextlib
import signal
from collections.abc import Iterator
from typing import Any


class Stopped:
    """Remembers that SIGINT, SIGTERM or SIGHUP came, from the moment it is armed."""

    def __init__(self) -> None:
        self._came = False

    def __call__(self) -> bool:
        return self._came

    @contextlib.contextmanager
    def armed(self) -> Iterator["Stopped"]:
        """Within: the signals are a wish to stop; else SIGTERM and SIGHUP act as Ctrl-C does."""
        numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
        before = [signal.signal(number, self._handle) for number in numbers]
        try:
            yield self
        finally:
            for number, handler in zip(numbers, before, strict=True):
                signal.signal(number, handler)

    def _handle(self, number: int, frame: Any) -> None:
        self._came = True
