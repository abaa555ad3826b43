# SPDX-License-Identifier: GPL-2.0-or-later
"""The progress of a run on another machine, from the last lines of its streams."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from contract.run_files import HEARTBEAT, KEYS, latency_log
from run.live import FROZE_S

TAIL_BYTES = 4096
LOG = latency_log("*")


@dataclass(frozen=True)
class Progress:
    """guest_s: s of the guest's clock since the workload began. frozen: names of silent streams."""

    guest_s: float | None = None
    frozen: tuple[str, ...] = ()

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> "Progress":
        """The progress in a host's report about a job."""
        return cls(found["guest_s"], tuple(found["frozen"]))

    @property
    def words(self) -> str:
        """The progress as text; empty if the workload has not begun."""
        if self.guest_s is None:
            return ""
        silent = f", frozen: {' '.join(self.frozen)}" if self.frozen else ""
        return f"guest {self.guest_s:.0f} s{silent}"


def of_run(run: Path) -> Progress:
    """The progress of the run that is written to this folder."""
    now = _elapsed(run / latency_log(HEARTBEAT))
    if now is None:
        return Progress()
    frozen = []
    # Without the key stream, whose lines are always seconds apart.
    for path in sorted({*run.glob(LOG)} - {run / latency_log(KEYS)}):
        line = last_line(path)
        heard = _seconds(line)
        silent = now - (heard or 0.0)
        if silent >= FROZE_S and not line.endswith("[end]"):
            frozen.append(path.name.removeprefix(LOG.partition("*")[0]).partition(".")[0])
    return Progress(now, tuple(frozen))


def last_line(path: Path) -> str:
    """The last line of a file; empty if there is no file or line."""
    try:
        with open(path, "rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - TAIL_BYTES))
            lines = file.read().decode("utf-8", "replace").strip().splitlines()
    except OSError:
        return ""
    return lines[-1] if lines else ""


def _elapsed(path: Path) -> float | None:
    return _seconds(last_line(path))


def _seconds(line: str) -> float | None:
    try:
        return float(line.split()[0])
    except (IndexError, ValueError):
        return None
