# SPDX-License-Identifier: GPL-2.0-or-later
"""Do other metrics rank kernels as the primary one does? `python3 -m benchmarks.ranks DIR…`

Input: campaigns of one workload. Output: for each metric that a user feels, Spearman's rank
correlation with the primary metric over the means of the variants, its p of all permutations (of
9,999 random ones from 8 variants on), and the correlation over the single runs. Runs that failed or
were not done are left out.
"""

import argparse
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean

import numpy as np
from scipy.stats import permutation_test, spearmanr

from analysis.figures.metrics import Metric, measure, metrics_of, whole
from analysis.reading.load import Run, load_campaign
from errors import UserError, run_command

LEAST = 4  # variants: with three the smallest p is 0.33
PERMUTATIONS = 9_999
Pair = tuple[float, float]


@dataclass(frozen=True)
class Ranked:
    """A metric's rank correlation with the primary one, from -1 to 1; None: it never varies."""

    metric: Metric
    variants: float | None
    p: float | None
    runs: float | None


def correlation(pairs: Sequence[Pair]) -> float | None:
    """Spearman's, from -1 to 1; None if all pairs have one first or one second value."""
    first, second = ({pair[side] for pair in pairs} for side in (0, 1))
    if len(first) < 2 or len(second) < 2:
        return None
    return float(spearmanr(pairs).statistic)


def probability(pairs: Sequence[Pair]) -> float:
    """How probable a correlation as large, of either sign, is by chance (0 to 1)."""
    first, second = zip(*pairs, strict=True)
    tested = permutation_test(
        (first,),
        lambda values: spearmanr(values, second).statistic,
        permutation_type="pairings",
        n_resamples=PERMUTATIONS,
        rng=np.random.default_rng(1),
    )
    return float(tested.pvalue)


def ranked(runs: Iterable[Run]) -> list[Ranked]:
    """All metrics that a user feels, in their order; UserError if there are too few variants."""
    done = [run for run in runs if whole(run)]
    if len({run.workload.name for run in done}) > 1:
        raise UserError("these are runs of several workloads")
    variants = {run.variant for run in done}
    if len(variants) < LEAST:
        raise UserError(f"{len(variants)} variants have runs that completed; {LEAST} are needed")
    primary, *others = metrics_of(done[0].workload)
    figures = [(run.variant, measure(run, [primary, *others])) for run in done]
    return [_ranked(primary, metric, figures) for metric in others if metric.felt]


def _ranked(
    primary: Metric, metric: Metric, figures: Sequence[tuple[str, dict[str, float | None]]]
) -> Ranked:
    by_variant: dict[str, list[tuple[float, float]]] = {}
    for variant, of_run in figures:
        first, second = of_run[primary.key], of_run[metric.key]
        if first is not None and second is not None:
            by_variant.setdefault(variant, []).append((first, second))
    of_runs = [pair for pairs in by_variant.values() for pair in pairs]
    means = [
        (mean(x for x, _ in pairs), mean(y for _, y in pairs)) for pairs in by_variant.values()
    ]
    known = len(means) >= LEAST
    of_variants = correlation(means) if known else None
    p = None if of_variants is None else probability(means)
    return Ranked(metric, of_variants, p, correlation(of_runs))


def text(ranks: Sequence[Ranked]) -> list[str]:
    """A line for each metric."""

    def cell(value: float | None, digits: int) -> str:
        return "-" if value is None else f"{value:.{digits}f}"

    lines = [f"{'metric':34}{'variants':>9}{'p':>8}{'runs':>7}"]
    for rank in ranks:
        cells = (cell(rank.variants, 2), cell(rank.p, 4), cell(rank.runs, 2))
        lines.append(f"{rank.metric.name:34}{cells[0]:>9}{cells[1]:>8}{cells[2]:>7}")
    return lines


def main(argv: list[str]) -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="python3 -m benchmarks.ranks", description=__doc__)
    parser.add_argument("campaigns", nargs="+", type=Path, metavar="DIR")
    options = parser.parse_args(argv)
    runs = [run for path in options.campaigns for run in load_campaign(path).runs]
    print("\n".join(text(ranked(runs))))
    return 0


if __name__ == "__main__":
    sys.exit(run_command("benchmarks.ranks", lambda: main(sys.argv[1:])))
