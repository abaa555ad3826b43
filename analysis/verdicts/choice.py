# SPDX-License-Identifier: GPL-2.0-or-later
"""Which run represents its variant, and which variants are shown if there is no room for all."""

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
from analysis.reading.words import safe_line
from contract.workload import STALLED

SHOWN = 12  # variants that a picture on one screen can tell apart
LISTED_RUNS = 36  # with more runs, those that ended as they should are not listed singly


def median_run(runs: Iterable[Run]) -> Run | None:
    """The median run by `badness`, of the runs with a subject; of two middle runs the worse.

    A run that failed, or was not done, ranks behind all that ended by themselves. A run that was
    aborted, or that lost lines or its primary figure, represents its variant only if there is no
    other run.
    """
    candidates = [run for run in runs if run.subjects]
    candidates = [run for run in candidates if counted(run)] or candidates
    known = [run for run in candidates if _is_last(run) or not (lost(run) or _unranked(run))]
    candidates = known or candidates
    ranked = sorted(candidates, key=lambda run: (*badness(run), run.number))
    return ranked[len(ranked) // 2] if ranked else None


def medians(campaign: Campaign, variants: Iterable[str]) -> dict[str, Run]:
    """The median run of each of these variants, in this order; without variants that have none."""
    runs = campaign.variants()
    return {variant: run for variant in variants if (run := median_run(runs.get(variant, [])))}


def badness(run: Run) -> tuple[float, float]:
    """A run's rank: the primary figure (inf if the run failed or was cut), then stalled seconds.

    More is worse, whichever direction the primary metric has.
    """
    stalled, primary = stalled_seconds(run), metrics_of(run.workload)[0]
    figure = stalled if primary.key == STALLED else primary_figure(run)
    return (math.inf if _is_last(run) or figure is None else primary.sign * figure), stalled


def _is_last(run: Run) -> bool:
    return failed(run) or unfinished(run)


def _unranked(run: Run) -> bool:
    """Whether the run has no figure to rank it by."""
    return badness(run)[0] == math.inf


def ranked_by(primary: Metric) -> str:
    """The figure that runs are ranked by, in words."""
    return "stalled seconds" if primary.key == STALLED else "primary metric"


def worst_subject(run: Run) -> Stream:
    """The subject with the longest stall, which texts name and a sawtooth shows."""
    return max(run.subjects, key=worst)


def in_order(campaign: Campaign, baseline: str | None = None) -> list[str]:
    """The variants that have runs: the baseline, then those planned, then the others by name."""
    there = campaign.variants()
    asked = [
        baseline or campaign.plan.baseline,
        *(variant.label for variant in campaign.plan.variants),
    ]
    return [variant for variant in dict.fromkeys([*asked, *there]) if variant in there]


def display_labels(campaign: Campaign) -> dict[str, str]:
    """The name of each variant in reports: its label, with its folder's name if labels repeat."""
    labels = {
        variant: safe_line(runs[0].label, 60) for variant, runs in campaign.variants().items()
    }
    often = Counter(labels.values())
    return {
        variant: label
        if often[label] == 1
        else f"{safe_line(label, 40)} ({safe_line(variant, 60)})"
        for variant, label in labels.items()
    }


def extremes(runs: dict[str, Run], limit: int = SHOWN) -> list[str]:
    """At most `limit` variants, in their order: the first (the baseline), the best, the worst.

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
    """Which variants `extremes` kept, in words; empty if it kept all."""
    if count <= limit:
        return ""
    best = (limit - 1) // 2
    worst = limit - 1 - best
    extreme = f"the {best} best and the {worst} worst by the {ranked_by(primary)}"
    if primary.key == STALLED:
        extreme = f"the {best} that stalled least and the {worst} that stalled most"
    return f"{limit} of {count} variants shown: the baseline, {extreme}"
