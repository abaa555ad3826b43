# SPDX-License-Identifier: GPL-2.0-or-later
"""Output of the programs that load the machine: printed lines, keys of moments, a file of figures.

This module imports little, because the memory of these programs is part of the experiment.
"""

import json
import os
from collections.abc import Mapping
from pathlib import Path

SAY_S = 0.5  # between lines: less than a stall
SCOPE = "DESKTOP_FREEZE_SCOPE"  # in a program's environment: the control group of its own
SEEN_S = 0.6  # the observers take four samples a second


def begin_of(phase: str) -> str:
    """The key of the moment before a phase (seconds of CLOCK_MONOTONIC)."""
    return f"at-{phase}-begin"


def end_of(phase: str) -> str:
    """The key of the moment after a phase (seconds of CLOCK_MONOTONIC)."""
    return f"at-{phase}-end"


def search_path() -> str:
    """PATH with the sbin folders, which an ordinary user's PATH lacks on Debian."""
    return f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"


def say(line: str) -> None:
    """Print one line at once."""
    os.write(1, line.encode() + b"\n")


def write_json(figures: Mapping[str, float], path: Path) -> None:
    """Write the figures so far as a JSON object; the file is replaced as a whole."""
    aside = path.with_suffix(".new")
    aside.write_text(json.dumps(figures))
    aside.rename(path)
