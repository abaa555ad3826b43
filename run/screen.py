# SPDX-License-Identifier: GPL-2.0-or-later
"""The terminal, shared by the views of all runs: their live tables below printed lines."""

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
    """Something with a live table."""

    def table(self) -> Table:
        """The table at this moment."""


class Screen:
    """A live display on a terminal, plain lines elsewhere; any thread may print."""

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
        """Whether tables are shown, so that no progress lines are needed."""
        return self._live is not None

    def add(self, shown: Shown) -> None:
        """Show a table from now on."""
        with self._lock:
            self._shown.append(shown)

    def remove(self, shown: Shown) -> None:
        """Stop showing a table."""
        with self._lock:
            self._shown.remove(shown)
        self.update()

    def update(self) -> None:
        """Draw all tables as they are now."""
        if self._live:
            with self._lock, contextlib.suppress(OSError):
                self._live.update(Group(*(shown.table() for shown in self._shown)))

    def say(self, text: str) -> None:
        """Print a line that stays on the screen."""
        # If the terminal is closed, the measurement goes on.
        with contextlib.suppress(OSError):
            self._console.print(Text(printable(text)), soft_wrap=True)
