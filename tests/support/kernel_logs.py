# SPDX-License-Identifier: GPL-2.0-or-later
"""What the tests of the recorder and of its command share."""

import re
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

LINE = re.compile(r"(\d+\.\d{3}) (\d+\.\d{3}) (.*)")
TICKING = "import os,time\nfor i in range(%d):\n os.write(1,b'tick %%d\\n'%%i); time.sleep(%s)\n"


def parse(text: str) -> list[tuple[float, float, str]]:
    """The rows of a log; every line must have the format's shape."""
    assert text.endswith("\n")
    rows = []
    for line in text[:-1].split("\n"):
        match = LINE.fullmatch(line)
        assert match, line
        rows.append((float(match[1]), float(match[2]), match[3]))
    return rows


def add_up(rows: list[tuple[float, float, str]]) -> None:
    """A stream's gaps add up to its elapsed time, at every line."""
    total = 0
    for elapsed, gap, _ in rows:
        total += round(gap * 1000)
        assert total == round(elapsed * 1000)


def whole_lines(path: Path) -> str:
    """What a log holds so far, without a line that is being written."""
    text = path.read_text() if path.exists() else ""
    return text[: text.rfind("\n") + 1]


def python(code: str) -> list[str]:
    """The command that runs this code."""
    return [sys.executable, "-S", "-c", code]


def wait_for(what: Callable[[], Any], seconds: float = 20) -> Any:
    """What it returns, once that is something."""
    give_up = time.monotonic() + seconds
    while not (found := what()):
        assert time.monotonic() < give_up
        time.sleep(0.01)
    return found


def state_of(pid: int) -> str:
    """A process's state as the kernel calls it; empty if there is no such process."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return ""
    return stat.rpartition(")")[2].split()[0]


def is_gone(pid: int) -> bool:
    """Whether this process has ended (a zombie has)."""
    return state_of(pid) in ("", "Z")
