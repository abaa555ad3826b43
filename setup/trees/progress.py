# SPDX-License-Identifier: GPL-2.0-or-later
"""The progress of a kernel's build: counts its steps and compares with the last similar build."""

import contextlib
import json
import re
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from contract.run_record import write_json
from errors import printable
from setup import cache

# A step as make prints it: `  CC      mm/vmscan.o`, `  CC [M]  fs/xfs/xfs.o`.
STEP = re.compile(r"  ([A-Z][A-Z0-9_]*(?: \[M\])?) +(\S+)\s*")
STEPS = "kernel-build-steps.json"
LIVE_S, EACH_S, WIDTH = 0.5, 60.0, 76
ENOUGH = 20  # steps after which their pace allows an estimate


@dataclass(frozen=True)
class Progress:
    """A build's last step, its steps done and in all, and the seconds left, if known."""

    label: str
    step: str
    done: int
    total: int | None
    left_s: float | None

    @property
    def words(self) -> str:
        """`compiling v7.2+fix: N of about M steps, about 6 min left (CC mm/vmscan.o)`."""
        of = f" of about {max(self.total, self.done)}" if self.total else ""
        left = ""
        if self.left_s is not None:
            minutes = self.left_s / 60
            left = f", about {minutes:.0f} min left" if minutes >= 1 else ", less than 1 min left"
        return printable(f"compiling {self.label}: {self.done}{of} steps{left} ({self.step})")


class Shown:
    """Shows progress on stderr: a line that changes on a terminal, else a new one each minute."""

    def __init__(self) -> None:
        self._shown = -EACH_S
        self._live = sys.stderr is not None and sys.stderr.isatty()

    def __call__(self, progress: Progress) -> None:
        now = time.monotonic()
        if now - self._shown < (LIVE_S if self._live else EACH_S):
            return
        self._shown = now
        # A closed stderr is no reason to end a build.
        with contextlib.suppress(OSError):
            if self._live:
                print(f"\r\033[K  {progress.words[:WIDTH]}\r", end="", file=sys.stderr, flush=True)
            else:
                print(f"  {progress.words}", file=sys.stderr, flush=True)


class Follower:
    """Counts the steps in what make prints."""

    def __init__(self, label: str, total: int | None, progress: Callable[[Progress], None]) -> None:
        self.done = 0
        self._label = label
        self._total = total
        self._progress = progress
        self._began = time.monotonic()

    def see(self, line: str) -> None:
        """Take a line that make printed."""
        match = STEP.fullmatch(line.rstrip("\n"))
        if match is None:
            return
        self.done += 1
        left = None
        if self._total and self.done >= ENOUGH:
            pace = (time.monotonic() - self._began) / self.done
            left = max(self._total - self.done, 0) * pace
        self._progress(
            Progress(self._label, f"{match[1]} {match[2]}", self.done, self._total, left)
        )


class Steps:
    """The number of steps that the last build of a configuration took."""

    def __init__(self, name: str) -> None:
        self._name = name

    def get(self) -> int | None:
        """The number of steps; None if it was not built yet."""
        steps = self._all().get(self._name)
        return steps if isinstance(steps, int) else None

    def keep(self, steps: int) -> None:
        """Store the number of steps for the next build."""
        with cache.writing():
            write_json(_file(), {**self._all(), self._name: steps})

    def _all(self) -> dict[str, object]:
        try:
            content = json.loads(_file().read_text())
        except (OSError, ValueError):
            return {}
        return content if isinstance(content, dict) else {}


def _file() -> Path:
    return cache.root() / STEPS


def steps_of(parts: Sequence[str]) -> Steps:
    """The steps of the configuration with these parts."""
    return Steps(cache.key(*parts))
