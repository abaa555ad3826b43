# SPDX-License-Identifier: GPL-2.0-or-later
"""Reads /proc/meminfo."""

import re
from pathlib import Path

MEMINFO = Path("/proc/meminfo")


def in_bytes(row: str = "MemTotal", file: Path = MEMINFO) -> int | None:
    """A row in bytes; None if this kernel has no such row, or if the file cannot be read."""
    try:
        text = file.read_text()
    except OSError:
        return None
    match = re.search(rf"^{row}:\s+(\d+) kB", text, re.MULTILINE)
    return int(match[1]) << 10 if match else None
