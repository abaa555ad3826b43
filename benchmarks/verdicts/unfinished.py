# SPDX-License-Identifier: GPL-2.0-or-later
"""How often verdicts err where runs were not done: `python3 -m benchmarks.verdicts.unfinished`.

A simulated run stalls for a log-normal number of seconds, and takes longer the more it stalls. What
is not done at the limit, the same for all runs, has stalled for the part of its seconds that fits.
So when a run is cut depends on what is measured, as in real ones. Output: the table of
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
from analysis.verdicts.verdict import Sample
from benchmarks.verdicts.simulate import contradicts
from contract.levels import ALPHA, MARGIN
from errors import run_command

STALLED_S, SCATTER = 600.0, 0.15  # of a run, and the sd of its logarithm
# A run takes so long beside its stalls, which four programs have at once, and that scatters, too.
WORK_S, AT_ONCE, WORK_SCATTER = 60.0, 4, 0.05
SETTINGS = [
    (runs, effect, share)
    for effect in (1.0, 1.25, 1.5, 2.0)
    for runs in (5, 10)
    for share in (0.2, 0.5, 0.8)
]


@dataclass
class Shares:
    """Of all campaigns; `cut`: of the runs of either variant."""

    cut_base: float = 0.0
    cut_sample: float = 0.0
    regressed: float = 0.0
    improved: float = 0.0
    equivalent: float = 0.0
    covered: float = 0.0  # of the intervals, those that hold the true ratio
    contradicted: int = 0


def simulate(runs: int, effect: float, share: float, number: int, seed: int) -> Shares:
    """Campaigns of so many runs of each, of which share of the baseline's is not done."""
    rng = np.random.default_rng(seed)
    _, takes = _drawn(rng, 20_000, 1.0)
    limit = float(np.quantile(takes, 1 - share))
    found = Shares()
    for _ in range(number):
        base, sample = (_sample(rng, runs, by, limit) for by in (1.0, effect))
        (one,) = judge([Pair(PRIMARY, "b", base, sample)], level=ALPHA, margin=MARGIN)
        found.cut_base += base.unfinished / runs / number
        found.cut_sample += sample.unfinished / runs / number
        found.regressed += (one.verdict == "regressed") / number
        found.improved += (one.verdict == "improved") / number
        found.equivalent += (one.verdict == "equivalent") / number
        high = math.inf if one.high is None else one.high
        found.covered += ((one.low or 0.0) <= effect <= high) / number
        found.contradicted += contradicts(one)
    return found


def _drawn(rng: np.random.Generator, runs: int, effect: float) -> tuple[Floats, Floats]:
    """How long whole runs stall, and how long they take."""
    stalled = effect * STALLED_S * np.exp(SCATTER * rng.standard_normal(runs))
    work = WORK_S * np.exp(WORK_SCATTER * rng.standard_normal(runs))
    return stalled, work + stalled / AT_ONCE


def _sample(rng: np.random.Generator, runs: int, effect: float, limit: float) -> Sample:
    stalled, takes = _drawn(rng, runs, effect)
    cut = takes > limit
    seen = np.where(cut, stalled * limit / takes, stalled)
    flags = tuple(cut.tolist()) if cut.any() else ()
    return Sample(tuple(seen.tolist()), cut=flags)


def main(arguments: list[str] | None = None) -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(
        prog="python3 -m benchmarks.verdicts.unfinished",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--campaigns", type=int, default=1000, metavar="N")
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args(arguments)
    print(
        "| truth | runs of each | not done, baseline | not done, variant | regressed | improved "
        "| equivalent | interval holds the truth | contradictions |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    for runs, effect, share in SETTINGS:
        one = simulate(runs, effect, share, asked.campaigns, asked.seed)
        truth = "the same kernel (A/A)" if effect == 1 else f"{effect:g} times"
        shares = (
            *(one.cut_base, one.cut_sample, one.regressed, one.improved),
            *(one.equivalent, one.covered),
        )
        cells = [f"{100 * share:.1f} %" for share in shares]
        print(f"| {truth} | {runs} | {' | '.join(cells)} | {one.contradicted} |")
    return 0


if __name__ == "__main__":
    sys.exit(run_command("benchmarks.verdicts.unfinished", main))
