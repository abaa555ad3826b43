# SPDX-License-Identifier: GPL-2.0-or-later
"""How often the verdicts err, and what they find: `python3 -m benchmarks.verdicts DIR...`.

Input: campaigns of real runs. Output: the tables of docs/developer/verdict-validation.md. Each row
is from 1,000 simulated campaigns (benchmarks/verdicts/simulate.py describes them), which
analysis.verdicts.judge judges as analysis.compare does. Equal folders and seed give equal tables.
"""

import argparse
import sys
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np

from analysis.reading.load import load_campaign
from benchmarks.verdicts.blames import Truth, cause_pools, simulate_blames
from benchmarks.verdicts.simulate import (
    FEWEST,
    Pool,
    Setting,
    Tally,
    campaigns,
    pools,
    simulate,
    spreads,
)
from contract.levels import ALPHA, MARGIN
from errors import UserError, run_command

LOOKS = (5, 7, 10, 14, 20)
RUNS = ((3,), (5,), (10,), LOOKS)
MANY = ((6, 5, 5), (12, 5, 10), (18, 6, 6))  # other variants, runs of each, of the baseline
JUST_OUTSIDE = 1 + MARGIN
POWER = 0.8  # share of campaigns in which one of these ratios must be found: a verdict's cost
FOUND = (1.25, JUST_OUTSIDE)
ENOUGH = (
    4,
    5,
    6,
    7,
    8,
    10,
    12,
    14,
    17,
    20,
    25,
    30,
    40,
    50,
    70,
    100,
)  # runs of each variant that are tried
CALM = 0.1  # share of the real scatter: more of it makes equivalence within 10 % undetectable


def main(arguments: list[str] | None = None) -> int:
    """Print the tables; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python3 -m benchmarks.verdicts", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("dir", type=Path, nargs="+", help="a campaign of real runs")
    parser.add_argument("--campaigns", type=int, default=1000, metavar="N")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--run-s",
        type=_seconds,
        metavar="S",
        help="seconds of this machine per run: elapsed time divided by parallel runs",
    )
    options = parser.parse_args(arguments)
    loaded = [load_campaign(folder) for folder in options.dir]
    pool = pools(loaded)
    if not pool:
        raise UserError(f"no variant has {FEWEST} runs to draw from", hint="name a campaign")
    for line in _pools(pool, options.seed):
        print(line)
    table = Table(pool, options.campaigns, options.seed)
    table.primary()
    table.cost(options.run_s)
    table.spread()
    if with_evidence := cause_pools(loaded):
        table.blames(with_evidence)
    else:
        print(f"\nNo variant has {FEWEST} runs with evidence: no blame is simulated.")
    table.many()
    return 0


def _pools(pool: list[Pool], seed: int) -> list[str]:
    lines = [
        "| drawn from | real runs | stalled s, real | sd | stalled s, simulated | sd |",
        "|---|---|---|---|---|---|",
    ]
    for variant in pool:
        drawn = variant.draw(np.random.default_rng(seed), 2000)
        real = variant.real
        lines.append(
            f"| {variant.name} | {len(real)} | {real.mean():.1f} | {real.std(ddof=1):.1f} | "
            f"{drawn.mean():.1f} | {drawn.std(ddof=1):.1f} |"
        )
    return lines


class Table:
    """Prints its rows as soon as they are computed; each has its own seed."""

    def __init__(self, pool: list[Pool], number: int, seed: int) -> None:
        self.pool, self.number, self.seed = pool, number, seed

    def primary(self) -> None:
        print(
            "\n| truth | variants | runs of each | regressed | improved | either | equivalent "
            "| not sure | interval holds the truth | contradictions |"
        )
        print("|---|---|---|---|---|---|---|---|---|---|")
        for variants in (1, 2):
            for runs in RUNS:
                self._row("the same kernel (A/A)", Setting(runs, variants))
        for runs in RUNS:
            for effect in (1.0, JUST_OUTSIDE, 1 / JUST_OUTSIDE):
                truth = "the same" if effect == 1 else f"{effect:.3f} times (the margin)"
                self._row(f"{truth}, scatter a tenth", Setting(runs, 1, effect, CALM))
        for effect in (FOUND[0], 1.5, 2.0):
            for runs in RUNS:
                self._row(f"{effect:g} times", Setting(runs, 1, effect))

    def _row(self, truth: str, setting: Setting) -> None:
        self.seed += 1
        drawn = campaigns(self.pool, setting, self.number, self.seed)
        tally = simulate(drawn, setting, alpha=ALPHA, margin=MARGIN)
        runs = str(setting.runs[0])
        if len(setting.runs) > 1:
            runs = f"until sure, {setting.runs[0]} to {setting.runs[-1]} ({tally.runs:.1f})"
        held = _percent(tally.covered) if tally.covered else ""
        print(
            f"| {truth} | {setting.variants} | {runs} | {_shares(tally)} | {held} "
            f"| {tally.contradicted} |",
            flush=True,
        )

    def many(self) -> None:
        """Verdicts on many variants at once, also with more runs of the baseline."""
        print(
            "\n| truth | others | runs of each | of the baseline | any regressed or improved "
            "| comparisons regressed |"
        )
        print("|---|---|---|---|---|---|")
        truths = (
            ("the same kernel (A/A)", Setting((5,))),
            ("the others scatter 2 times as much", Setting((5,), scatter=2.0)),
            ("2 times", Setting((5,), effect=2.0)),
        )
        for (truth, change), (others, runs, baseline_runs) in product(truths, MANY):
            self.seed += 1
            setting = replace(change, runs=(runs,), variants=others, baseline_runs=baseline_runs)
            drawn = campaigns(self.pool, setting, self.number, self.seed)
            tally = simulate(drawn, setting, alpha=ALPHA, margin=MARGIN)
            shares = f"{_percent(tally.differs)} | {_percent(tally.regressed_comparisons)}"
            print(f"| {truth} | {others} | {runs} | {baseline_runs} | {shares} |", flush=True)

    def cost(self, run_s: float | None) -> None:
        print(
            f"\n| drawn from | times | runs of each until it is found in {_percent(POWER)} | found "
            "| minutes |\n|---|---|---|---|---|"
        )
        for effect, variant in product(FOUND, self.pool):
            self.seed += 1
            for runs in ENOUGH:
                setting = Setting((runs,), 1, effect)
                drawn = campaigns([variant], setting, self.number, self.seed)
                power = simulate(drawn, setting, alpha=ALPHA, margin=MARGIN).regressed
                if power >= POWER:
                    break
            enough = str(runs) if power >= POWER else f"more than {runs}"
            minutes = "" if run_s is None else f"{2 * runs * run_s / 60:.0f}"
            if power < POWER and minutes:
                minutes = f"more than {minutes}"
            row = f"| {variant.name} | {effect:.2f} | {enough} | {_percent(power)} | {minutes} |"
            print(row, flush=True)

    def spread(self) -> None:
        print("\n| truth | variants | runs of each | scatters more | scatters less | either |")
        print("|---|---|---|---|---|---|")
        same = Setting((5,))
        for truth, setting in (
            ("the same kernel (A/A)", same),
            ("the same kernel (A/A)", replace(same, variants=2)),
            ("the same kernel (A/A)", replace(same, runs=(6,))),
            ("the same kernel (A/A)", replace(same, runs=(10,))),
            ("stalls 2 times as long", replace(same, effect=2.0)),
            ("scatters 4 times as much", replace(same, scatter=4.0)),
            ("scatters 4 times as much", replace(same, scatter=4.0, runs=(10,))),
            ("scatters 16 times as much", replace(same, scatter=16.0)),
        ):
            self.seed += 1
            drawn = campaigns(self.pool, setting, self.number, self.seed)
            tally = spreads(drawn, alpha=ALPHA)
            print(
                f"| {truth} | {setting.variants} | {setting.runs[0]} | {_percent(tally.regressed)} "
                f"| {_percent(tally.improved)} | {_percent(tally.differs)} |",
                flush=True,
            )

    def blames(self, pool: list[Pool]) -> None:
        print("\n| causes drawn from | real runs |\n|---|---|")
        for variant in pool:
            print(f"| {variant.name} | {len(variant.real)} |")
        print(
            "\n| truth | runs of each | regressed or improved | only the right cause "
            "| it and others | others only | none named |"
        )
        print("|---|---|---|---|---|---|---|")
        for truth, settings in (
            ("the same kernel (A/A)", [Truth(runs) for runs in (5, 10)]),
            ("2 times, by one cause", [Truth(runs, 2.0) for runs in (5, 10)]),
            ("3 times, by one cause", [Truth(runs, 3.0) for runs in (5, 10)]),
            ("2 times, by all causes", [Truth(runs, 2.0, alone=False) for runs in (5, 10)]),
        ):
            for setting in settings:
                self.seed += 1
                blames = simulate_blames(
                    pool, setting, self.number, self.seed, alpha=ALPHA, margin=MARGIN
                )
                shares = " | ".join(_percent(share) for share in vars(blames).values())
                print(f"| {truth} | {setting.runs} | {shares} |", flush=True)


def _seconds(text: str) -> float:
    value = float(text)
    if not 0 < value < float("inf"):
        raise ValueError
    return value


def _shares(tally: Tally) -> str:
    shares = (
        *(tally.regressed, tally.improved, tally.differs),
        *(tally.equivalent, 1 - tally.sure),
    )
    return " | ".join(_percent(share) for share in shares)


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


if __name__ == "__main__":
    sys.exit(run_command("benchmarks.verdicts", main))
