# SPDX-License-Identifier: GPL-2.0-or-later
"""TEST HELPER: runs of a workload that measures something by itself. Nothing here was measured."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.synthetic_results.make import line_log, meta, write_run
from contract.workload import Description, Figure, FigureTable, TableRow

DEAD = "panicked"
DIRTY = Description(
    name="memcg-dirty",
    summary="two dd in a cgroup of 100 MiB, then the same two outside it",
    subject="heartbeat",
    subjects=("heartbeat", "heartbeat-inside"),
    primary="time-inside",
    figures=(
        Figure("time-inside", "both dd inside the cgroup", "s", 1, "lower"),
        Figure("rate-inside", "rate inside the cgroup", "MB/s", 2, "higher"),
    ),
    tables=(
        FigureTable(
            "Two dd of 256 MiB, inside and outside the cgroup",
            ("s", "MB/s"),
            (
                TableRow("inside, dd 1", ("time-inside-1", "rate-inside-1")),
                TableRow("inside, both", ("time-inside", "rate-inside")),
                TableRow("outside", ("time-outside", "")),
            ),
        ),
    ),
)


TOLD = DIRTY.as_meta()


def figures_of(inside: float) -> dict[str, float]:
    """What a run measures whose two dd took so many seconds inside; time-outside never."""
    return {
        "time-inside": inside,
        "rate-inside": 512 / inside,
        "time-inside-1": inside - 1,
        "rate-inside-1": 256 / (inside - 1),
    }


def workload_run(
    folder: Path,
    figures: Any,
    state: str = "completed",
    workload: Any = TOLD,
    **facts: Any,
) -> Path:
    """A heartbeat outside with a gap of 2 s, one inside with one of 3 s."""
    about = meta(folder.parent.name) | {
        "parameters": {"workload": DIRTY.name, "memory": 2**29},
        "workload": workload,
        "figures": figures,
    }
    beat = [(0.1, f"beat {n} late 0.000") for n in range(1, 21)]
    files: dict[str, str | bytes] = {
        "meta.json": json.dumps(about | facts),
        "latency-heartbeat.log": line_log([*beat, (2.0, "beat 21 late 1.900")], 0.0),
        "latency-heartbeat-inside.log": line_log([*beat, (3.0, "beat 21 late 2.900")], 0.0),
    }
    return write_run(folder, files, state, why="both dd done")


def dead_run(folder: Path, state: str = DEAD) -> Path:
    """A run that died before its machine said a word: it has only what its host knew."""
    own = ("format", "label", "accelerator", "machine", "disk")
    about = {key: value for key, value in meta(folder.parent.name).items() if key in own}
    about["parameters"] = {"workload": DIRTY.name, "memory": 2**29}
    files: dict[str, str | bytes] = {"meta.json": json.dumps(about)}
    return write_run(folder, files, state, why="no root", elapsed_s=None)


def workload_campaign(
    folder: Path,
    variants: Mapping[str, Sequence[float | str]],
    workload: Any = TOLD,
) -> Path:
    """Runs that took so many seconds inside; a word: the state of one that failed, DEAD at boot."""
    for label, runs in variants.items():
        for number, inside in enumerate(runs, 1):
            place = folder / label / str(number)
            if inside == DEAD:
                dead_run(place)
            elif isinstance(inside, str):
                workload_run(place, {"rate-inside": 1.0}, inside, workload)
            else:
                workload_run(place, figures_of(inside), workload=workload)
    return folder
