# SPDX-License-Identifier: GPL-2.0-or-later
"""How often a bisect names the wrong commit, and what it costs: `python3 -m benchmarks.bisect`.

Output: docs/example/bisect-simulation.txt. Each row is from 1,000 simulated searches
(benchmarks/bisect/simulate.py describes them), done by the functions that search among real
kernels. The same seed gives the same table.
"""

import argparse
import sys
from concurrent.futures import ProcessPoolExecutor
from os import sched_getaffinity

import numpy as np

from benchmarks.bisect.simulate import Setting, Tally, simulate
from errors import run_command

EFFECTS = (1.25, 1.5, 2.0)
SCATTERS = (0.06, 0.14)
OFFSETS = (0.0, 0.05, 0.1)
HEAD = (
    *("step", "scatter", "offsets", "beside", "right", "wrong", "not sure", "of these, 95 % hold"),
    *("runs: mean, 9 of 10", "kernels: mean, 9 of 10"),
)


def settings() -> list[tuple[str, Setting]]:
    """For each row what there is beside a plain step, in words, and its setting."""
    rows = [
        ("", Setting(effect, scatter, offset))
        for effect in EFFECTS
        for scatter in SCATTERS
        for offset in OFFSETS
    ]
    for scatter in SCATTERS:
        rows += [
            ("a second step of 1.25", Setting(1.5, scatter, 0.05, second=1.25)),
            ("a second step of 1.5", Setting(1.5, scatter, 0.05, second=1.5)),
            ("8 broken stretches", Setting(1.5, scatter, 0.05, broken=8)),
            ("40 commits, 4 broken", Setting(1.5, scatter, 0.05, 40, broken=4, longest=4)),
        ]
    rows.append(("half of the bad runs hang", Setting(1.5, 0.14, 0.05, hangs=0.5)))
    rows.append(("heavy tails, t(3)", Setting(1.5, 0.14, 0.05, tails=True)))
    return rows


def main(arguments: list[str] | None = None) -> int:
    """Print the table; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python3 -m benchmarks.bisect", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--searches", type=int, default=1000, metavar="N")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    print(f"| {' | '.join(HEAD)} |\n|{'---|' * len(HEAD)}", flush=True)
    rows = settings()
    with ProcessPoolExecutor(len(sched_getaffinity(0))) as pool:
        tallies = pool.map(
            simulate,
            [setting for _, setting in rows],
            [options.searches] * len(rows),
            range(options.seed, options.seed + len(rows)),
        )
        for (beside, setting), tally in zip(rows, tallies, strict=True):
            first = [f"{setting.effect:g}", *(f"{100 * x:g} %" for x in _deviations(setting))]
            print(f"| {' | '.join([*first, beside, *cells(tally)])} |", flush=True)
    return 0


def _deviations(setting: Setting) -> tuple[float, float]:
    return setting.scatter, setting.offset


def cells(tally: Tally) -> list[str]:
    """The cells with the results of a row's searches."""
    searches = len(tally.runs)
    return [
        *(_percent(part, searches) for part in (tally.right, tally.wrong, tally.unsure)),
        _percent(tally.held, tally.unsure),
        *(
            f"{np.mean(row):.0f}, {np.quantile(row, 0.9, method='inverted_cdf'):.0f}"
            for row in (tally.runs, tally.kernels)
        ),
    ]


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %" if whole else ""


if __name__ == "__main__":
    sys.exit(run_command("benchmarks.bisect", main))
