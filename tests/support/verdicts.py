# SPDX-License-Identifier: GPL-2.0-or-later
"""TEST HELPER: tiny campaigns whose stalled seconds are as asked for. Nothing here was measured."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.synthetic_results.make import line_log, meta, write_run

FLAT = 0.5  # s: of a gap that is no stall


def stalling_run(folder: Path, stalled: float | str, **facts: Any) -> Path:
    """One gitk: ten gaps of 0.5 s, then one gap of all the stalled seconds; a word: its state."""
    seconds = stalled if isinstance(stalled, float) else 0.0
    gaps = [(FLAT, f"pass 1 commits {n}") for n in range(10)]
    if seconds:
        gaps.append((seconds, "pass 1 commits 10"))
    about = meta(folder.parent.name) | {"parameters": {"gitk": 1, "memory": 2**29}} | facts
    files: dict[str, str | bytes] = {
        "meta.json": json.dumps(about),
        "latency-gitk-1.log": line_log(gaps, 0.0),
    }
    return write_run(folder, files, stalled if isinstance(stalled, str) else "completed")


def cut_at_the_limit(folder: Path, limit_s: float | None = None) -> None:
    """Let a variant's runs, or one run, be such that were not done at their limit, if it is known.

    Only runs whose limit is known can be compared up to it.
    """
    for status in folder.glob("**/status.json"):
        status.write_text(status.read_text().replace('"completed"', '"unfinished"'))
        if limit_s is not None:
            end_after(status, limit_s)


def end_after(status: Path, elapsed_s: float) -> None:
    """Let this status.json say that the run took so many seconds."""
    status.write_text(json.dumps(json.loads(status.read_text()) | {"elapsed_s": elapsed_s}))


def campaign(
    folder: Path, variants: Mapping[str, Sequence[float | str]], plan: str = "", **facts: Any
) -> Path:
    """A campaign whose runs, in turn, stall for so many seconds."""
    for label, runs in variants.items():
        for number, stalled in enumerate(runs, 1):
            stalling_run(folder / label / str(number), stalled, **facts)
    if plan:
        (folder / "plan.toml").write_text(plan)
    return folder
