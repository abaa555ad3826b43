# SPDX-License-Identifier: GPL-2.0-or-later
"""The terminal that the views of all runs share: a live table for each of them below its lines."""

import contextlib
import threading
from types import TracebackType
from typing import Protocol

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from errors import printable


class Shown(Protocol):
    """What has a table of how it is now."""

    def table(self) -> Table:
        """The table."""


class Screen:
    """A live display on a terminal, plain lines elsewhere; any thread may say something."""

    def __init__(self) -> None:
        self._console = Console(highlight=False)
        self._shown: list[Shown] = []
        self._lock = threading.Lock()
        self._live = (
            Live(console=self._console, refresh_per_second=4, transient=True)
            if self._console.is_terminal
            else None
        )

    def __enter__(self) -> "Screen":
        if self._live:
            self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._live:
            with contextlib.suppress(OSError):
                self._live.stop()

    @property
    def live(self) -> bool:
        """Whether there are tables, so that no line has to say how far something is."""
        return self._live is not None

    def add(self, shown: Shown) -> None:
        """Show its table from now on."""
        with self._lock:
            self._shown.append(shown)

    def remove(self, shown: Shown) -> None:
        """No longer."""
        with self._lock:
            self._shown.remove(shown)
        self.update()

    def update(self) -> None:
        """Draw all tables as they are now."""
        if self._live:
            with self._lock, contextlib.suppress(OSError):
                self._live.update(Group(*(one.table() for one in self._shown)))

    def say(self, text: str) -> None:
        """A line that stays."""
        # A terminal that was closed is no reason to end a measurement.
        with contextlib.suppress(OSError):
            self._console.print(Text(printable(text)), soft_wrap=True)
