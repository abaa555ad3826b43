# SPDX-License-Identifier: GPL-2.0-or-later
"""Durations of earlier runs on this machine: for estimates only."""

import contextlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from contract.options import Options
from setup import cache

KEPT = 8  # durations kept per kind of run, the latest


def _file(parameters: Mapping[str, Any], accel: str) -> Path:
    values = json.dumps(dict(parameters), sort_keys=True)
    return cache.place() / "durations" / f"{cache.key(values, accel)}.json"


def note(parameters: Mapping[str, Any], accel: str, seconds: float) -> None:
    """Remember a completed run's whole time in seconds, from boot to power-off."""
    path = _file(parameters, accel)
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        aside = path.with_suffix(".new")
        aside.write_text(json.dumps([*_known(path), round(seconds, 1)][-KEPT:]))
        aside.rename(path)


def kind_of(options: Options, jobs: int) -> dict[str, Any]:
    """What a run's time depends on, with `jobs` runs in parallel; options: only its variant's."""
    return options.parameters | options.in_machine | {"jobs": jobs}


def estimate(kind: Mapping[str, Any], accel: str) -> float | None:
    """Seconds that a run of this kind takes; None if no such run was done here."""
    accels = ("kvm", "tcg") if accel == "auto" else (accel,)
    known = [seconds for name in accels for seconds in _known(_file(kind, name))]
    return sum(known) / len(known) if known else None


def words(seconds: float) -> str:
    """A duration as text: '40 s', '12 min', '3 h 20 min'."""
    minutes = round(seconds / 60)
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60:02} min"


def _known(path: Path) -> list[float]:
    try:
        durations = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return []
    return [float(seconds) for seconds in durations if isinstance(seconds, int | float)]
