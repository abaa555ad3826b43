# SPDX-License-Identifier: GPL-2.0-or-later
"""How often a trend errs, and how soon it finds a change: `python3 -m benchmarks.trend`.

Output: docs/example/trend-simulation.txt. Each row is from 1,000 simulated series
(benchmarks/trend/simulate.py describes them), judged as analysis.trend judges real kernels. The
same seed gives the same table.
"""

import argparse
import sys

import numpy as np

from benchmarks.trend.simulate import Setting, Tally, simulate
from errors import run_command

NIGHTS = (10, 30, 100)
SCATTERS = (0.06, 0.14)
FACTORS = (1.1, 1.25, 1.5, 2.0)
MENDED = 1.5
HEAD = (
    *("nights", "scatter", "truth", "false alarm", "found", "after nights: median, 9 of 10"),
    *("right night", "nights named hold it", "interval holds the ratio", "interval holds 1"),
)


def settings() -> list[tuple[str, Setting]]:
    """Each row's truth, in words and as a setting."""
    rows = []
    for nights in NIGHTS:
        for scatter in SCATTERS:
            rows.append(("no change", Setting(nights, scatter)))
            for factor in FACTORS:
                change = ((nights // 2, factor),)
                rows.append((f"{factor:g} times", Setting(nights, scatter, change)))
            mend = ((nights // 3, MENDED), (2 * nights // 3, 1 / MENDED))
            rows.append((f"{MENDED:g} times, mended", Setting(nights, scatter, mend)))
    for nights in NIGHTS[:2]:  # with ties each night has its own distribution
        rows.append(("no change, half the runs 0 s", Setting(nights, 0.14, calm=0.5)))
    rows.append(("no change, 1 run a night", Setting(100, 0.14, runs=1)))
    rows.append(("1.5 times, 1 run a night", Setting(100, 0.14, ((50, 1.5),), runs=1)))
    return rows


def main(arguments: list[str] | None = None) -> int:
    """Print the table; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python3 -m benchmarks.trend", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--series", type=int, default=1000, metavar="N")
    parser.add_argument(
        "--measured",
        type=int,
        default=200,
        metavar="N",
        help="series whose intervals are computed, too",
    )
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    print(f"| {' | '.join(HEAD)} |\n|{'---|' * len(HEAD)}")
    for number, (truth, setting) in enumerate(settings()):
        tally = simulate(setting, options.series, options.measured, options.seed + number)
        first = [str(setting.nights), f"{100 * setting.scatter:g} %", truth]
        print(f"| {' | '.join([*first, *cells(tally, options.series)])} |", flush=True)
    return 0


def cells(tally: Tally, series: int) -> list[str]:
    """The cells with a row's results."""
    shares = [_percent(tally.false, series)]
    if not tally.true:
        return [*shares, *[""] * 6]
    shares.append(_percent(len(tally.nights), tally.true))
    if not tally.nights:
        return [*shares, *[""] * 5]
    soon = [f"{np.quantile(tally.nights, q, method='inverted_cdf'):g}" for q in (0.5, 0.9)]
    return [
        *shares,
        ", ".join(soon),
        _percent(tally.right, len(tally.nights)),
        _percent(sum(tally.placed), len(tally.placed)),
        _percent(sum(tally.covered), len(tally.covered)),
        f"{tally.holds_one} of {len(tally.covered)}",
    ]


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %" if whole else ""


if __name__ == "__main__":
    sys.exit(run_command("benchmarks.trend", main))
