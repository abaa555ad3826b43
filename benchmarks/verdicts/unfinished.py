# SPDX-License-Identifier: GPL-2.0-or-later
"""How often verdicts err if runs reach their limit: `python3 -m benchmarks.verdicts.unfinished`.

A simulated run stalls for a log-normal number of seconds, and takes longer the more it stalls. All
runs have the same limit; a run that is not done by then has stalled for its share of the seconds up
to the limit. So whether a run is cut depends on what is measured, as in real runs. If no run of
either was done, the verdict is about the time up to the limit; the interval of such a ratio is not
counted, since no true ratio of it is known. Output: the table of
docs/developer/verdict-validation.md; the same seed gives the same table.
"""

import argparse
import math
import sys
from dataclasses import dataclass

import numpy as np

from analysis.figures.metrics import PRIMARY
from analysis.reading.latency_log import Floats
from analysis.verdicts.judge import Pair, judge
from analysis.verdicts.verdict import Limited, Sample
from benchmarks.verdicts.simulate import contradicts
from contract.levels import ALPHA, MARGIN
from errors import run_command

STALLED_S, SCATTER = 600.0, 0.15  # stalled seconds of a run, and the sd of their logarithm
# A run's seconds beside its stalls, which AT_ONCE programs have at once; sd of their logarithm.
WORK_S, AT_ONCE, WORK_SCATTER = 60.0, 4, 0.05
LINES = 2000.0  # of a complete run
ALL = 1.0  # share of the runs that reach the limit: it is at half of the time that they take
SETTINGS = [
    (runs, effect, share)
    for effect in (1.0, 1.25, 1.5, 2.0)
    for runs in (5, 10)
    for share in (0.2, 0.5, 0.8, ALL)
]


@dataclass
class Shares:
    """Shares of all campaigns; cut_*: shares of the runs of baseline and variant."""

    cut_base: float = 0.0
    cut_sample: float = 0.0
    regressed: float = 0.0
    improved: float = 0.0
    equivalent: float = 0.0
    to_limit: float = 0.0  # share of the campaigns that are compared up to the limit
    intervals: int = 0  # number of the other campaigns
    covered: float = 0.0  # share of their intervals that contain the true ratio; 0 without any
    contradicted: int = 0  # number of campaigns


def simulate(runs: int, effect: float, share: float, number: int, seed: int) -> Shares:
    """Simulate campaigns with `runs` runs of each; `share` of the baseline's reach the limit."""
    rng = np.random.default_rng(seed)
    _, takes = _drawn(rng, 20_000, 1.0)
    limit = float(np.median(takes) / 2 if share == ALL else np.quantile(takes, 1 - share))
    shares = Shares()
    for _ in range(number):
        base, sample = (_sample(rng, runs, by, limit) for by in (1.0, effect))
        (compared,) = judge([Pair(PRIMARY, "b", base, sample)], level=ALPHA, margin=MARGIN)
        shares.cut_base += base.unfinished / runs / number
        shares.cut_sample += sample.unfinished / runs / number
        shares.regressed += (compared.verdict == "regressed") / number
        shares.improved += (compared.verdict == "improved") / number
        shares.equivalent += (compared.verdict == "equivalent") / number
        high = math.inf if compared.high is None else compared.high
        shares.contradicted += contradicts(compared)
        if compared.limit_s is not None:
            shares.to_limit += 1 / number
        else:
            shares.intervals += 1
            shares.covered += (compared.low or 0.0) <= effect <= high
    shares.covered /= max(1, shares.intervals)
    return shares


def _drawn(rng: np.random.Generator, runs: int, effect: float) -> tuple[Floats, Floats]:
    """The seconds that complete runs stall, and the seconds that they take."""
    stalled = effect * STALLED_S * np.exp(SCATTER * rng.standard_normal(runs))
    work = WORK_S * np.exp(WORK_SCATTER * rng.standard_normal(runs))
    return stalled, work + stalled / AT_ONCE


def _sample(rng: np.random.Generator, runs: int, effect: float, limit: float) -> Sample:
    stalled, takes = _drawn(rng, runs, effect)
    cut = takes > limit
    seen = np.where(cut, stalled * limit / takes, stalled)
    flags = tuple(cut.tolist()) if cut.any() else ()
    late = float(np.mean(100 * stalled / AT_ONCE / takes))
    lines = float(np.mean(LINES * limit / takes))
    limited = Limited(limit, lines, late) if cut.all() else None
    return Sample(tuple(seen.tolist()), cut=flags, limited=limited)


def main(arguments: list[str] | None = None) -> int:
    """Print the table; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="python3 -m benchmarks.verdicts.unfinished",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--campaigns", type=int, default=1000, metavar="N")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    print(
        "| truth | runs of each | not done, baseline | not done, variant | none done | regressed "
        "| improved | equivalent | interval holds the truth | contradictions |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|")
    for runs, effect, share in SETTINGS:
        row = simulate(runs, effect, share, options.campaigns, options.seed)
        truth = "the same kernel (A/A)" if effect == 1 else f"{effect:g} times"
        shares = (
            *(row.cut_base, row.cut_sample, row.to_limit, row.regressed, row.improved),
            row.equivalent,
        )
        cells = [f"{100 * share:.1f} %" for share in shares]
        cells.append(f"{100 * row.covered:.1f} %" if row.intervals else "-")
        print(f"| {truth} | {runs} | {' | '.join(cells)} | {row.contradicted} |")
    return 0


if __name__ == "__main__":
    sys.exit(run_command("benchmarks.verdicts.unfinished", main))
