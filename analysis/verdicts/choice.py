# SPDX-License-Identifier: GPL-2.0-or-later
"""Which run stands for its variant, and which variants for all, where not all can be shown."""

import math
from collections import Counter
from collections.abc import Iterable, Sequence

from analysis.figures.metrics import (
    Metric,
    counted,
    failed,
    lost,
    metrics_of,
    primary_figure,
    unfinished,
)
from analysis.figures.stalls import stalled_seconds, worst
from analysis.reading.load import Campaign, Run
from analysis.reading.streams import Stream
from analysis.reading.words import plain
from contract.workload import STALLED

SHOWN = 12  # variants that a picture on one screen can tell apart
LISTED_RUNS = 36  # of more runs those that ended as they should are not told one by one


def median_run(runs: Iterable[Run]) -> Run | None:
    """The run with a subject that is the median by `badness`; of two the worse one.

    A run that failed, or was not done, ranks behind all that ended by themselves. One that was
    aborted, or of which lines or the primary figure are lost, stands for its variant only if there
    is no other.
    """
    found = [run for run in runs if run.subjects]
    found = [run for run in found if counted(run)] or found
    known = [run for run in found if _is_last(run) or not (lost(run) or _unranked(run))]
    found = known or found
    ranked = sorted(found, key=lambda run: (*badness(run), run.number))
    return ranked[len(ranked) // 2] if ranked else None


def medians(campaign: Campaign, variants: Iterable[str]) -> dict[str, Run]:
    """Of each of these variants that has one the run that stands for it, in this order."""
    runs = campaign.variants()
    return {one: run for one in variants if (run := median_run(runs.get(one, [])))}


def badness(run: Run) -> tuple[float, float]:
    """What a run is ranked by: the primary figure, inf if it failed or was cut; then stalls.

    More is worse, whichever direction the primary metric has.
    """
    stalled, primary = stalled_seconds(run), metrics_of(run.workload)[0]
    figure = stalled if primary.key == STALLED else primary_figure(run)
    return (math.inf if _is_last(run) or figure is None else primary.sign * figure), stalled


def _is_last(run: Run) -> bool:
    return failed(run) or unfinished(run)


def _unranked(run: Run) -> bool:
    """Whether nothing is known to rank the run by."""
    return badness(run)[0] == math.inf


def ranked_by(primary: Metric) -> str:
    """What runs are ranked by, in words."""
    return "stalled seconds" if primary.key == STALLED else "primary metric"


def worst_subject(run: Run) -> Stream:
    """The subject with the longest stall, of which the texts speak: what a sawtooth shows."""
    return max(run.subjects, key=worst)


def in_order(campaign: Campaign, baseline: str | None = None) -> list[str]:
    """The variants that have runs: the baseline, then as planned, then the others by name."""
    there = campaign.variants()
    asked = [baseline or campaign.plan.baseline, *(one.label for one in campaign.plan.variants)]
    return [one for one in dict.fromkeys([*asked, *there]) if one in there]


def display_labels(campaign: Campaign) -> dict[str, str]:
    """Variant -> what to call it: its label, with its folder's name if others are called so too."""
    labels = {one: plain(runs[0].label, 60) for one, runs in campaign.variants().items()}
    often = Counter(labels.values())
    return {
        one: label if often[label] == 1 else f"{plain(label, 40)} ({plain(one, 60)})"
        for one, label in labels.items()
    }


def extremes(runs: dict[str, Run], limit: int = SHOWN) -> list[str]:
    """At most limit of the variants, in their order: the first (baseline), the best, the worst.

    `runs`: the median run of each variant.
    """
    if len(runs) <= limit:
        return list(runs)
    first, *others = runs
    ranked = sorted(others, key=lambda variant: badness(runs[variant]))
    best = (limit - 1) // 2
    kept = {first, *ranked[:best], *ranked[best + 1 - limit :]}
    return [variant for variant in runs if variant in kept]


def shown(campaign: Campaign, variants: Sequence[str], limit: int = SHOWN) -> list[str]:
    """The `extremes` of these variants, by their median runs."""
    return extremes(medians(campaign, variants), limit)


def shown_words(limit: int, count: int, primary: Metric) -> str:
    """What `extremes` left out, in words; empty if nothing."""
    if count <= limit:
        return ""
    best = (limit - 1) // 2
    worst = limit - 1 - best
    extreme = f"the {best} best and the {worst} worst by the {ranked_by(primary)}"
    if primary.key == STALLED:
        extreme = f"the {best} that stalled least and the {worst} that stalled most"
    return f"{limit} of {count} variants shown: the baseline, {extreme}"
