# SPDX-License-Identifier: GPL-2.0-or-later
"""A file of JSON lines beside a larger file, which then need not be rewritten for each entry.

An entry is on disk when append() returns. The larger file takes over the entries now and then, and
then the journal is cleared: if the process is killed in between, both files have the entries.
"""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

SHARE = 0.02  # at most this share of the larger file's entries is in the journal


class Journal:
    """The journal at a path. known: the number of entries in the larger file."""

    def __init__(self, path: Path, known: int = 0) -> None:
        self._path = path
        self._known = known
        self._pending = len(self.read())

    def read(self) -> list[dict[str, Any]]:
        """Its entries, up to a line that was cut short."""
        try:
            lines = self._path.read_bytes().split(b"\n")
        except FileNotFoundError:
            return []
        entries = []
        for line in lines[:-1]:
            try:
                entries.append(json.loads(line))
            except ValueError:
                break
        return [entry for entry in entries if isinstance(entry, dict)]

    def append(self, entry: Mapping[str, Any]) -> bool:
        """Keep an entry; returns False, and keeps nothing, if the larger file is due."""
        if self._pending + 1 > SHARE * self._known:
            return False
        with open(self._path, "ab") as file:
            file.write(json.dumps(entry).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())
        self._pending += 1
        return True

    def clear(self, known: int) -> None:
        """Remove all entries: the larger file now has them. known: its number of entries."""
        self._path.unlink(missing_ok=True)
        self._known, self._pending = known, 0

    @property
    def is_empty(self) -> bool:
        """Whether the larger file has all entries."""
        return not self._pending
