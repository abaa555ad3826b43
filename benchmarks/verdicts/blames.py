# SPDX-License-Identifier: GPL-2.0-or-later
"""Whether the cause that a regression is said to come from is the one that made it.

Campaigns as in simulate.py, but each run's stalled seconds are by cause, from the evidence of the
real runs. Of the variant one cause is made longer, so that the truth is known.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from analysis.figures.metrics import PRIMARY
from analysis.figures.stalls import Stall
from analysis.reading.latency_log import Floats
from analysis.reading.load import Campaign, Run
from analysis.stall_causes.causes import CAUSES
from analysis.stall_causes.run_causes import run_causes
from analysis.verdicts.blame import NOUNS, blame
from analysis.verdicts.cause_table import CauseTable
from analysis.verdicts.judge import Pair, judge_families
from analysis.verdicts.verdict import Sample
from benchmarks.verdicts.simulate import Pool, pools

KEYS = [cause.key for cause in CAUSES]
GROWS = 0.1  # of a pool's stalled seconds: what is made longer is a cause with more of them


@dataclass(frozen=True)
class Truth:
    """The variant's stalled seconds are `effect` times the baseline's, on the average.

    By one cause alone, another one in each campaign, or by all of them alike.
    """

    runs: int  # of each
    effect: float = 1.0
    alone: bool = True


@dataclass
class Blames:
    """Shares of all campaigns: with a verdict, and what was said of where it comes from."""

    verdict: float = 0.0
    right: float = 0.0  # the cause that was made longer, and no other
    beside: float = 0.0  # it and another
    wrong: float = 0.0  # others only
    none: float = 0.0  # no cause was named


def cause_pools(campaigns: list[Campaign]) -> list[Pool]:
    """Of the runs that have evidence: runs x causes (of KEYS)."""
    return pools(campaigns, _by_cause, len(KEYS))


def _by_cause(run: Run) -> list[tuple[Stall, Floats]] | None:
    if (why := run_causes(run)) is None:
        return None
    return [
        (card.stall, np.array([card.seconds.get(key, 0.0) for key in KEYS])) for card in why.cards
    ]


def simulate_blames(
    pool: Sequence[Pool], truth: Truth, number: int, seed: int, *, alpha: float, margin: float
) -> Blames:
    """What is said of `number` campaigns."""
    rng = np.random.default_rng(seed)
    drawn = [_campaign(pool, truth, rng) for _ in range(number)]
    families = judge_families(
        [[_pair(base, other)] for base, other, _ in drawn], level=alpha, margin=margin
    )
    tally = Blames()
    for (base, other, grown), (primary,) in zip(drawn, families, strict=True):
        if primary.verdict not in NOUNS:
            continue
        tally.verdict += 1
        named = blame(_table(base, other), "a", {"b": primary}, level=alpha, margin=margin)
        causes = set(named["b"].causes)
        tally.right += causes == grown and len(grown) == 1
        tally.beside += bool(causes & grown) and causes != grown
        tally.wrong += bool(causes) and not causes & grown
        tally.none += not causes
    return Blames(*(value / number for value in vars(tally).values()))


def _campaign(
    pool: Sequence[Pool], truth: Truth, rng: np.random.Generator
) -> tuple[Floats, Floats, set[str]]:
    """Baseline, variant, and the causes of which the variant has more."""
    one = pool[int(rng.integers(len(pool)))]
    base, other = one.draw(rng, truth.runs), one.draw(rng, truth.runs)
    if truth.effect == 1:
        return base, other, set()
    if not truth.alone:
        return base, truth.effect * other, set(KEYS)
    mean = one.real.mean(axis=0)
    place = int(rng.choice(np.flatnonzero(mean >= GROWS * mean.sum())))
    other[:, place] *= 1 + (truth.effect - 1) * mean.sum() / mean[place]
    return base, other, {KEYS[place]}


def _pair(base: Floats, other: Floats) -> Pair:
    return Pair(PRIMARY, "b", _sample(base.sum(axis=1)), _sample(other.sum(axis=1)))


def _sample(values: Floats) -> Sample:
    return Sample(tuple(values.tolist()))


def _table(base: Floats, other: Floats) -> CauseTable:
    samples = {
        key: {"a": _sample(base[:, i]), "b": _sample(other[:, i])} for i, key in enumerate(KEYS)
    }
    apart = {"a": frozenset({True}), "b": frozenset({True})}
    return CauseTable({}, ["a", "b"], {"a": "a", "b": "b"}, samples, apart)
