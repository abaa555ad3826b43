# SPDX-License-Identifier: GPL-2.0-or-later
"""TEST HELPER: tiny campaigns whose counters of /proc/vmstat are as asked for; nothing measured."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from analysis.figures.vmstat import is_level
from benchmarks.synthetic_results.make import table
from tests.support.verdicts import stalling_run

SAMPLES = 9  # of a run, one each half second
Cells = list[float | int | None]


def vmstat(counters: Mapping[str, float | Cells]) -> str:
    """A vmstat.tsv: a number is what the counter grows by, or the level it has; a list its cells.

    What grows begins at 1,000, for a run is never a machine's first work.
    """
    columns: dict[str, Cells] = {
        "elapsed_s": [n * 0.5 for n in range(SAMPLES)],
        "late_s": [0.0] * SAMPLES,
    }
    for name, asked in counters.items():
        if isinstance(asked, list):
            columns[name] = asked
        elif is_level(name):
            columns[name] = [asked] * SAMPLES
        else:
            columns[name] = [1000 + int(x) for x in np.linspace(0, asked, SAMPLES)]
    return table(columns)


def campaign_of_counters(
    folder: Path, variants: Mapping[str, Sequence[Mapping[str, float | Cells] | str]]
) -> Path:
    """Each run's counters; a word: the state of a run that ended so, with none of them."""
    for label, runs in variants.items():
        for number, counters in enumerate(runs, 1):
            ended = isinstance(counters, str)
            run = stalling_run(folder / label / str(number), counters if ended else 5.0)  # type: ignore[arg-type]
            if not isinstance(counters, str):
                (run / "vmstat.tsv").write_text(vmstat(counters))
    return folder
