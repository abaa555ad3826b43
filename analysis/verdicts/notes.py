# SPDX-License-Identifier: GPL-2.0-or-later
"""Notes, a sentence each: what a reader must know about a campaign's runs and verdicts."""

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from analysis.figures.metrics import Metric, counted, failed, lost, unfinished
from analysis.reading import facts
from analysis.reading.load import Campaign, Run
from analysis.reading.words import first_names, plural, plural_subject, safe_line
from analysis.verdicts.statistics import cliffs_delta
from analysis.verdicts.verdict import Comparison
from contract.workload import Description

IN_TURN = 0.75  # Cliff's delta of the runs' places in the campaign; 1 / runs if they take turns


def of_runs(campaign: Campaign, runs: list[Run]) -> list[str]:
    """Notes on the runs that a reader must know before believing the figures."""
    notes = [*campaign.pooled]

    def listed(words: str, names: list[str]) -> None:
        if names:
            notes.append(f"{words}: {safe_line(', '.join(names), 1000)}.")

    listed("Incomplete, left out", campaign.incomplete)
    listed("Cut short and run again, left out", campaign.set_aside)
    others = [run for run in campaign.runs if not counted(run)]
    listed(
        "Ended from outside, not counted", [f"{r.variant}/{r.number} ({r.state})" for r in others]
    )
    bad = [run for run in runs if failed(run)]
    holes = [f"{r.variant}/{r.number} ({why})" for r in runs if not failed(r) and (why := lost(r))]
    lines = f"Lines of {plural_subject(campaign.subject)} are lost"
    listed(f"{lines}, and stalls may be with them: no figures of gaps of", holes)
    listed("Failed, counted as the worst", [f"{r.variant}/{r.number} ({r.state})" for r in bad])
    cut = [f"{r.variant}/{r.number}" for r in runs if unfinished(r)]
    listed("Not done at their limit (--timeout), sums and counts are at least so much", cut)
    listed(
        "Read with care (damage is named in the summary)",
        [f"{run.variant}/{run.number}" for run in runs if run.warnings],
    )
    listed("Problems", campaign.problems)
    notes += facts.unknown(runs) + facts.busy_host(runs) + _hosts(runs) + _suites(runs)
    notes += _looked_at(campaign)
    return notes


def _hosts(runs: list[Run]) -> list[str]:
    """A note if several hosts' clocks timed the runs; else no note."""
    hosts = {facts.block(run) for run in runs}
    if len(hosts) < 2:
        return []
    return [
        f"Measured on the clocks of {len(hosts)} hosts: verdicts, ratios and intervals compare the "
        "runs of each host only with that host's. Means are over all hosts, and how runs scatter "
        "is not judged."
    ]


def _suites(runs: list[Run]) -> list[str]:
    """A note if several states of the suite made the runs; else no note."""
    by_variant: dict[str, set[str]] = {}
    for run in runs:
        if isinstance(suite := run.fact("suite"), str):
            by_variant.setdefault(run.variant, set()).add(safe_line(suite, 40))
    every = sorted(set().union(*by_variant.values()))
    if len(every) < 2:
        return []
    apart = any(a.isdisjoint(b) for a, b in combinations(by_variant.values(), 2))
    effect = "looks like a difference between variants" if apart else "is in their scatter"
    return [
        f"Measured by {len(every)} states of this suite ({first_names(every, 3)}): what changed in "
        f"what it brings into a guest {effect}."
    ]


def not_counted(primary: Metric, runs: list[Run]) -> list[str]:
    """A note if the primary metric of runs that were not done is not counted; else no note."""
    names = [f"{run.variant}/{run.number}" for run in runs if unfinished(run)]
    if not names or primary.growing:
        return []
    return [
        f"Not counted, since {primary.title} of a run that was not done says nothing of a whole "
        f"one: {safe_line(', '.join(names), 1000)}. They were slow, and what is left looks better."
    ]


def to_limit(comparisons: Sequence[Comparison]) -> list[str]:
    """A note if some verdicts are about the time up to the limit only; else no note."""
    names = [compared.variant for compared in comparisons if compared.limit_s is not None]
    if not names:
        return []
    return [
        f"Compared up to the limit, by which no run of theirs or of the baseline was done: "
        f"{safe_line(', '.join(names), 1000)}. That is no verdict on whole runs."
    ]


def no_such_metric(workload: Description, primary: Metric) -> list[str]:
    """A note if nothing measures the workload's primary metric; else no note."""
    if primary.key == workload.primary:
        return []
    return [
        f"There is no metric {safe_line(workload.primary, 60)}, which the workload is about: the "
        f"verdicts are about {primary.title}."
    ]


def in_blocks(by_variant: dict[str, list[Run]], variants: list[str]) -> list[str]:
    """A note on variants whose runs did not take turns with the baseline's; else no note."""
    orders = {
        variant: np.array([run.order for run in by_variant[variant] if counted(run) and run.order])
        for variant in variants
    }
    base = orders[variants[0]]
    names = [
        safe_line(variant, 60)
        for variant in variants[1:]
        if min(len(orders[variant]), len(base)) >= 2
        and abs(cliffs_delta(orders[variant][None], base[None])[0]) > IN_TURN
    ]
    if not names:
        return []
    return [
        f"Not interleaved with the runs of {safe_line(variants[0], 60)}, but before or after them: "
        f"{safe_line(', '.join(names), 1000)}. Whatever else changed meanwhile looks like a "
        "difference."
    ]


def _looked_at(campaign: Campaign) -> list[str]:
    """Notes on repeated looks at the verdicts, and on runs that are still missing."""
    plan, notes = campaign.plan, []
    if plan.looks:
        at = ", ".join(map(str, plan.looks))
        share = f"{plan.level * len(plan.looks):.3g} / {len(plan.looks)} = {plan.level:.2g}"
        notes.append(
            f"Looked at after {at} runs of each: every look has the level {share}, so that all of "
            f"them together err in at most {100 * plan.level * len(plan.looks):.3g} %."
        )
    elif plan.runs is not None and plan.variants:
        counts = dict.fromkeys((variant.label for variant in plan.variants), 0)
        for run in campaign.runs:
            counts[run.variant] = counts.get(run.variant, 0) + counted(run)
        missing = sum(max(0, plan.runs - number) for number in counts.values())
        if missing:
            notes.append(
                f"Not finished: {plural(missing, 'run')} of {plan.runs * len(counts)} "
                f"{'is' if missing == 1 else 'are'} missing; "
                "the verdicts are provisional."
            )
    if plan.extended:
        after = ", ".join(map(str, plan.extended))
        whole = 100 * plan.alpha * (2 - 0.5 ** len(plan.extended))
        notes.append(
            f"Made longer after it had been judged at {after} runs of each: these verdicts have "
            f"the level {plan.level:.2g}; with the earlier ones they err in at most {whole:.3g} %."
        )
    return notes
