# SPDX-License-Identifier: GPL-2.0-or-later
"""Whether the cause that is named for a regression is the one that made it.

The campaigns are those of simulate.py, but each run's stalled seconds are split by cause, from the
evidence of the real runs. One cause of the variant is made longer, so that the truth is known.
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
GROWS = 0.1  # least share of a pool's stalled seconds of the cause that is made longer


@dataclass(frozen=True)
class Truth:
    """The variant's stalled seconds are on average `effect` times the baseline's.

    alone: one cause makes the difference, another one in each campaign; else all causes do, alike.
    """

    runs: int  # of each variant
    effect: float = 1.0
    alone: bool = True


@dataclass
class Blames:
    """Shares of all campaigns: those with a verdict, by which causes were named."""

    verdict: float = 0.0
    right: float = 0.0  # only the cause that was made longer
    beside: float = 0.0  # this cause and others
    wrong: float = 0.0  # only others
    none: float = 0.0  # none


def cause_pools(campaigns: list[Campaign]) -> list[Pool]:
    """The pools of runs with evidence: stalled seconds, runs x causes (of KEYS)."""
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
    """Simulate `number` campaigns; returns which causes were named."""
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
    """Baseline and variant (seconds, runs x causes), and the causes that were made longer."""
    source = pool[int(rng.integers(len(pool)))]
    base, other = source.draw(rng, truth.runs), source.draw(rng, truth.runs)
    if truth.effect == 1:
        return base, other, set()
    if not truth.alone:
        return base, truth.effect * other, set(KEYS)
    mean = source.real.mean(axis=0)
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
