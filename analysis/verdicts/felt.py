# SPDX-License-Identifier: GPL-2.0-or-later
"""What a user of the machine experiences with a variant: how often and how long it is frozen.

Every text gives these figures before the stalled seconds, which are a sum over several programs
(docs/explain/verdicts.md).

Also what a remedy costs: seconds frozen and programs lost are two figures, never added up. A
variant is `improved` only if it loses no more programs than the baseline; else it `trades` programs
for seconds. A remedy that never acted is `idle`, whatever its runs measured: they repeat the
baseline, and the difference is scatter.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from analysis.figures.lost_programs import acted, lost_programs
from analysis.figures.metrics import (
    added_up,
    counted,
    failed,
    frozen_share,
    unfinished,
)
from analysis.figures.stalls import worst
from analysis.reading.load import Run
from analysis.reading.streams import STALL
from analysis.reading.words import percent, seconds
from analysis.verdicts.slow_keys import WHERE, Shares, slow_key_shares
from analysis.verdicts.verdict import Comparison, Sample
from contract import remedy
from contract.plan import Plan
from contract.workload import Description


@dataclass(frozen=True)
class Felt:
    """`frozen`: per cent of the subjects' time in gaps of 1 s or more; `elapsed`: seconds of a run.

    Both are means of the runs that did not fail. `cut`: some of these were not done at their limit;
    they count up to it, and `worst` is a lower bound. `worst`: the longest gap (s) of any subject
    in any run, including the `failed` runs. `added_up`: whose stalled seconds are added up.
    `keys`: the shares of slow keys in the runs that did not fail.
    """

    frozen: float
    worst: float
    elapsed: float
    failed: int
    added_up: str
    cut: bool = False
    keys: Shares = field(default_factory=dict)


def felt_with(
    samples: Mapping[str, Mapping[str, Sample]],
    runs: Mapping[str, Sequence[Run]],
    variants: Sequence[str],
    workload: Description,
) -> dict[str, Felt]:
    """By variant; without variants whose runs did not end or lack figures. `samples`: by metric."""
    words = added_up(workload)
    felt = {}
    for variant in variants:
        frozen, elapsed = (samples[key][variant] for key in ("share-1", "elapsed"))
        results = list(filter(counted, runs[variant]))
        cut = any(map(unfinished, results))
        going = [run for run in results if not failed(run)]
        share = Sample.over(going, map(frozen_share, going)).mean if cut else frozen.mean
        if share is None or elapsed.mean is None:
            continue
        felt[variant] = Felt(
            share,
            max(worst(subject) for run in results for subject in run.subjects),
            elapsed.mean,
            frozen.failed,
            words,
            cut,
            slow_key_shares(going) if cut else _ended_shares(samples, variant),
        )
    return felt


def _ended_shares(samples: Mapping[str, Mapping[str, Sample]], variant: str) -> Shares:
    return {key: samples[key][variant].known for key in WHERE if key in samples}


def frozen_words(frozen: float, longest: float, when: str = "", *, cut: bool = False) -> str:
    """'frozen for 84 % of the time, at worst for 16.4 s', from per cent and seconds.

    when: which runs the share is of. cut: a run ended at its limit, so the longest gap is a lower
    bound.
    """
    if longest < STALL:
        return f"never frozen (no gap of {STALL:.0f} s), the longest gap {seconds(longest)}"
    least = "at least " if cut else ""
    return f"frozen for {percent(frozen)} of the time{when}, at worst for {least}{seconds(longest)}"


def felt_words(one: Felt, label: str = "", base: Felt | None = None) -> str:
    """`frozen_words` of a variant, then the baseline's figures in brackets."""
    when = " up to the limit" if one.cut else ""
    if one.failed:
        when = " in the runs that ended" + (f", or{when}" if when else "")
    text = frozen_words(one.frozen, one.worst, when, cut=one.cut)
    if base is not None:
        least = "at least " if base.cut else ""
        text += f" ({label}: {percent(base.frozen)}, {least}{seconds(base.worst)})"
    return text


def stalls_words(one: Felt) -> str:
    """'Stalls of four gitk's added up'."""
    return f"Stalls of {one.added_up}" if one.added_up else "All its stalls"


def summed_words(one: Felt, base: Felt | None = None) -> str:
    """'Stalls of four gitk's added up, in 480 s against 176 s', the seconds that runs took."""
    against = "" if base is None else f" against {base.elapsed:,.0f} s"
    return f"{stalls_words(one)}, in {one.elapsed:,.0f} s{against}"


def lost_a_run(runs: Sequence[Run]) -> float:
    """Programs lost in a run: the mean of the runs that count, 0 without runs.

    Without failed runs that lost no known program: their recorder may have been killed, too.
    """
    known = [(run, len(lost_programs(run))) for run in runs if counted(run)]
    counts = [count for run, count in known if count or not failed(run)]
    return math.fsum(counts) / len(counts) if counts else 0.0


def is_idle(plan: Plan, variant: str, runs: Sequence[Run]) -> bool:
    """Whether the variant has a remedy that acted in none of its runs."""
    asked = next((planned for planned in plan.variants if planned.label == variant), None)
    treated = None if asked is None else remedy.of_variant(asked)
    results = [run for run in runs if counted(run)]
    if treated is None or not results:
        return False
    return not any(acted(run, treated.acts) for run in results)


def with_losses(
    comparison: Comparison, plan: Plan, runs: Sequence[Run], base: Sequence[Run]
) -> Comparison:
    """The comparison with the programs lost (mean of a run), and the verdict that follows."""
    if not any(variant.remedy for variant in plan.variants):
        return comparison
    comparison = replace(comparison, lost=lost_a_run(runs), base_lost=lost_a_run(base))
    if is_idle(plan, comparison.variant, runs):
        return replace(comparison, verdict="idle", more_runs=None, least_runs=None)
    if comparison.verdict == "improved" and comparison.lost > comparison.base_lost:
        return replace(comparison, verdict="trades")
    return comparison
