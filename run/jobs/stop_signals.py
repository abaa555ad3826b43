# SPDX-License-Identifier: GPL-2.0-or-later
"""Handles SIGINT, SIGTERM and SIGHUP as a request to stop, for commands that have to clean up."""

import contextlib
import signal
from collections.abc import Iterator
from typing import Any


class Stopped:
    """Remembers whether SIGINT, SIGTERM or SIGHUP came while it was armed."""

    def __init__(self) -> None:
        self._came = False

    def __call__(self) -> bool:
        return self._came

    @contextlib.contextmanager
    def armed(self) -> Iterator["Stopped"]:
        """Within: these signals only request a stop; otherwise they act like Ctrl-C."""
        numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
        before = [signal.signal(number, self._handle) for number in numbers]
        try:
            yield self
        finally:
            for number, handler in zip(numbers, before, strict=True):
                signal.signal(number, handler)

    def _handle(self, number: int, frame: Any) -> None:
        self._came = True
