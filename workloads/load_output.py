# SPDX-License-Identifier: GPL-2.0-or-later
"""What the programs of workloads share: lines that they print, moments, the file of figures.

Imports little: memory is the experiment.
"""

import json
import os
from collections.abc import Mapping
from pathlib import Path

SAY_S = 0.5  # below what counts as a silence
SEEN_S = 0.6  # the observers look four times a second


def begin_of(phase: str) -> str:
    """The key of the moment before it (seconds of CLOCK_MONOTONIC)."""
    return f"at-{phase}-begin"


def end_of(phase: str) -> str:
    """The key of the moment after it."""
    return f"at-{phase}-end"


def searched() -> str:
    """PATH, and where Debian keeps programs that an ordinary user's does not look for."""
    return f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"


def say(line: str) -> None:
    """Print one line at once."""
    os.write(1, line.encode() + b"\n")


def keep(figures: Mapping[str, float], path: Path) -> None:
    """The figures so far as a JSON object, whole or not at all."""
    aside = path.with_suffix(".new")
    aside.write_text(json.dumps(figures))
    aside.rename(path)
