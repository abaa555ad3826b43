# SPDX-License-Identifier: GPL-2.0-or-later
"""A file of JSON lines beside a larger one, which need not be written whole for each line more.

An entry is on disk when append() returns. The larger file takes them in now and then, and the
journal is cleared after that: a process that is killed between leaves entries that are in both.
"""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

SHARE = 0.02  # of the larger file's entries: so many are in the journal at the most


class Journal:
    """The journal in a folder. known: how many entries the larger file has."""

    def __init__(self, path: Path, known: int = 0) -> None:
        self._path = path
        self._known = known
        self._pending = len(self.read())

    def read(self) -> list[dict[str, Any]]:
        """Its entries; a line that was cut short is none, and ends it."""
        try:
            lines = self._path.read_bytes().split(b"\n")
        except FileNotFoundError:
            return []
        found = []
        for line in lines[:-1]:
            try:
                found.append(json.loads(line))
            except ValueError:
                break
        return [one for one in found if isinstance(one, dict)]

    def append(self, entry: Mapping[str, Any]) -> bool:
        """Keep an entry; False, and nothing is kept, if it is time for the larger file."""
        if self._pending + 1 > SHARE * self._known:
            return False
        with open(self._path, "ab") as file:
            file.write(json.dumps(entry).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())
        self._pending += 1
        return True

    def clear(self, known: int) -> None:
        """The larger file has all entries now, known of them."""
        self._path.unlink(missing_ok=True)
        self._known, self._pending = known, 0

    @property
    def is_empty(self) -> bool:
        """Whether the larger file has all entries."""
        return not self._pending
