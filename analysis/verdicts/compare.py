# SPDX-License-Identifier: GPL-2.0-or-later
"""Which kernel stalls more: a campaign's variants against its baseline, and how sure that is.

docs/VERDICTS.md tells what a verdict means and how often it errs.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from analysis.figures import observer_faults
from analysis.figures.metrics import Metric, counted, failed, lost, measure, metrics_of
from analysis.reading import facts
from analysis.reading.load import Campaign, Run, first_described
from analysis.reading.words import plain, plural
from analysis.stall_causes.causes import RunCauses
from analysis.verdicts import cause_table, vmstat
from analysis.verdicts.blame import blame
from analysis.verdicts.choice import display_labels
from analysis.verdicts.compared import Compared
from analysis.verdicts.judge import Pair, judge, judge_failures, judge_spread
from analysis.verdicts.sentences import alone, sentence
from analysis.verdicts.statistics import cliffs_delta
from analysis.verdicts.verdict import Comparison, Sample
from contract.workload import STALLED, Description
from errors import UserError

IN_TURN = 0.75  # Cliff's delta of the runs' places in the campaign: taking turns it is 1 / runs


def compare(
    campaign: Campaign,
    *,
    baseline: str | None = None,
    force: bool = False,
    causes: Mapping[Path, RunCauses] | None = None,
    counters: vmstat.Figures | None = None,
) -> Compared:
    """The verdicts of a campaign; UserError names the fact in which its runs differ.

    `causes`, `counters`: what `collect` of analysis.verdicts.cause_table and .vmstat finds, if it
    is known already.
    """
    runs = [run for run in campaign.runs if counted(run)]
    differing = facts.differences(runs)
    if differing and not force:
        more = f" (and {len(differing) - 1} more)" if len(differing) > 1 else ""
        raise UserError(f"{differing[0]}{more}", hint="--force compares them all the same")
    notes = _notes(campaign, runs)
    by_variant = observer_faults.trusted(campaign.variants())
    judged = replace(campaign, runs=[run for each in by_variant.values() for run in each])
    variants = _ordered(campaign, baseline, notes)
    base, others = variants[0], variants[1:]
    named = display_labels(campaign)
    labels = {one: named[one] for one in variants}
    notes += _in_blocks(by_variant, variants)
    found = cause_table.collect(campaign) if causes is None else causes
    notes += cause_table.notes(campaign, found, labels)
    why = cause_table.cause_table(judged, variants, labels, found)
    of_base = [run for run in runs if run.variant == base]
    workload = first_described([*of_base, *campaign.runs]).workload
    metrics = metrics_of(workload)
    notes += _no_such_metric(workload, metrics[0])
    samples = _samples(by_variant, variants, metrics)
    level = campaign.plan.level
    figures = vmstat.collect(campaign) if counters is None else counters
    pairs = {
        metric.key: [
            Pair(metric, one, samples[metric.key][base], samples[metric.key][one]) for one in others
        ]
        for metric in metrics
    }
    first = pairs.pop(metrics[0].key)
    primary = judge(first, level=level, margin=campaign.plan.margin)
    notes += _with_disturbed(campaign, primary, labels, base, metrics[0])
    spread = judge_spread(first, level=level)
    everything = [pair for one in pairs.values() for pair in one]
    secondary: dict[str, dict[str, Comparison]] = {key: {} for key in pairs}
    for one in judge(everything, level=level, margin=campaign.plan.margin):
        secondary[one.metric.key][one.variant] = one
    ends = _ends(by_variant, variants)
    failures = judge_failures({one: ends[one] for one in others}, ends[base], level=level)
    sentences = {base: alone(labels[base], samples[metrics[0].key][base], metrics[0], bool(others))}
    for one, scatter in zip(primary, spread, strict=True):
        sentences[one.variant] = sentence(
            labels[one.variant], labels[base], one, scatter, failures[one.variant]
        )
    of_primary = {one.variant: one for one in primary}
    blamed = {}
    if metrics[0].key == STALLED:  # what a cause has seconds of
        blamed = blame(why, base, of_primary, level=level, margin=campaign.plan.margin)
    for variant, of_variant in blamed.items():
        sentences[variant] += f" {of_variant.sentence}"
    return Compared(
        campaign=campaign,
        baseline=base,
        variants=variants,
        labels=labels,
        primary=of_primary,
        spread={one.variant: one for one in spread},
        failures=failures,
        secondary=secondary,
        samples=samples,
        notes=notes,
        forced=differing,
        sentences=sentences,
        level=level,
        workload=workload,
        metrics=metrics,
        causes=why,
        blame=blamed,
        counters=vmstat.kernel_counters(by_variant, variants, figures, level),
    )


def _ordered(campaign: Campaign, asked: str | None, notes: list[str]) -> list[str]:
    """The variants that have runs, baseline first, then as planned."""
    there = campaign.variants()
    if not there:
        raise UserError(f"{campaign.path}: no run is complete, there is nothing to compare")
    planned = [variant.label for variant in campaign.plan.variants]
    names = [name for name in planned if name in there]
    names += [name for name in there if name not in names]
    if asked is not None:
        base = _asked(campaign, names, asked)
    else:
        wanted = campaign.plan.baseline
        base = wanted if wanted in there else names[0]
        if wanted is not None and wanted != base:
            notes.append(
                f"The plan's baseline {plain(wanted, 60)} has no run: compared with "
                f"{plain(base, 60)}."
            )
    return [base, *(name for name in names if name != base)]


def _asked(campaign: Campaign, names: list[str], asked: str) -> str:
    """The variant of this folder's name, or else of this label."""
    there, shown = campaign.variants(), display_labels(campaign)
    found = [name for name in names if asked in (there[name][0].label, shown[name])]
    found = [asked] if asked in names else found
    if len(found) == 1:
        return found[0]
    if found:
        raise UserError(
            f"{len(found)} variants are called {plain(asked, 60)!r}",
            hint=f"name one by its folder: {plain(', '.join(found))}",
        )
    known = plain(", ".join(names))
    raise UserError(f"no variant {plain(asked, 60)!r} to compare with: there is {known}")


def _no_such_metric(workload: Description, primary: Metric) -> list[str]:
    """A line that names the primary metric which nothing measures, or none."""
    if primary.key == workload.primary:
        return []
    return [
        f"There is no metric {plain(workload.primary, 60)}, which the workload is about: the "
        f"verdicts are about {primary.title}."
    ]


def _samples(
    by_variant: dict[str, list[Run]], variants: list[str], metrics: Sequence[Metric]
) -> dict[str, dict[str, Sample]]:
    samples: dict[str, dict[str, Sample]] = {metric.key: {} for metric in metrics}
    for variant in variants:
        runs = [run for run in by_variant[variant] if counted(run)]
        figures = [measure(run, metrics) for run in runs]
        for key, of_variants in samples.items():
            known = [
                (value, run.number, run.order)
                for run, figure in zip(runs, figures, strict=True)
                if (value := figure[key]) is not None
            ]
            values, numbers, orders = zip(*known, strict=True) if known else ((), (), ())
            of_variants[variant] = Sample(values, numbers, orders, len(runs) - len(known))
    return samples


def _ends(by_variant: dict[str, list[Run]], variants: list[str]) -> dict[str, Sample]:
    """How the runs ended: math.inf for those that failed, 0 for the others."""
    return {
        one: Sample(
            tuple(math.inf if failed(run) else 0.0 for run in by_variant[one] if counted(run))
        )
        for one in variants
    }


def _notes(campaign: Campaign, runs: list[Run]) -> list[str]:
    """What a reader must know of the runs before he believes the figures."""
    notes: list[str] = []

    def listed(words: str, names: list[str]) -> None:
        if names:
            notes.append(f"{words}: {plain(', '.join(names), 1000)}.")

    listed("Incomplete, left out", campaign.incomplete)
    listed("Cut short and run again, left out", campaign.set_aside)
    others = [run for run in campaign.runs if not counted(run)]
    listed(
        "Ended from outside, not counted", [f"{r.variant}/{r.number} ({r.state})" for r in others]
    )
    bad = [run for run in runs if failed(run)]
    holes = [f"{r.variant}/{r.number} ({why})" for r in runs if not failed(r) and (why := lost(r))]
    lines = f"Lines of {campaign.subject}'s are lost"
    listed(f"{lines}, and stalls may be with them: no figures of gaps of", holes)
    listed("Failed, counted as the worst", [f"{r.variant}/{r.number} ({r.state})" for r in bad])
    listed(
        "Read with care (damage is named in the summary)",
        [f"{run.variant}/{run.number}" for run in runs if run.warnings],
    )
    listed("Problems", campaign.problems)
    notes += facts.unknown(runs) + facts.busy_host(runs)
    notes += _looked_at(campaign)
    return notes


def _with_disturbed(
    campaign: Campaign,
    primary: list[Comparison],
    labels: dict[str, str],
    base: str,
    metric: Metric,
) -> list[str]:
    """Which runs are in no verdict since their observers were disturbed; what they would change."""
    whole = campaign.variants()
    bad = [
        (run, why)
        for runs in whole.values()
        for run in runs
        if (why := observer_faults.of_run(run))
    ]
    if not bad:
        return []
    names = [f"{run.variant}/{run.number} ({', '.join(why)})" for run, why in bad]
    text = f"Observers disturbed, in no verdict: {plain(', '.join(names), 1000)}."
    variants = [base, *(one.variant for one in primary)]
    samples = _samples(whole, variants, [metric])[metric.key]
    pairs = [Pair(metric, one.variant, samples[base], samples[one.variant]) for one in primary]
    again = judge(pairs, level=campaign.plan.level, margin=campaign.plan.margin)
    others = [
        f"{plain(labels[one.variant], 60)} would be {one.verdict}"
        for one, before in zip(again, primary, strict=True)
        if one.verdict != before.verdict
    ]
    if not primary:
        return [text]
    changed = f"{', '.join(others)}." if others else "every verdict would be the same."
    return [f"{text} With them {changed}"]


def _in_blocks(by_variant: dict[str, list[Run]], variants: list[str]) -> list[str]:
    """A line that names the variants whose runs did not take turns with the baseline's, or none."""
    orders = {
        one: np.array([run.order for run in by_variant[one] if counted(run) and run.order])
        for one in variants
    }
    base = orders[variants[0]]
    names = [
        plain(one, 60)
        for one in variants[1:]
        if min(len(orders[one]), len(base)) >= 2
        and abs(cliffs_delta(orders[one][None], base[None])[0]) > IN_TURN
    ]
    if not names:
        return []
    return [
        f"Not interleaved with the runs of {plain(variants[0], 60)}, but before or after them: "
        f"{plain(', '.join(names), 1000)}. Whatever else changed meanwhile looks like a difference."
    ]


def _looked_at(campaign: Campaign) -> list[str]:
    """How often the verdicts were or are looked at, and whether more runs are due."""
    plan, notes = campaign.plan, []
    if plan.looks:
        at = ", ".join(map(str, plan.looks))
        share = f"{plan.level * len(plan.looks):.3g} / {len(plan.looks)} = {plan.level:.2g}"
        notes.append(
            f"Looked at after {at} runs of each: every look has the level {share}, so that all of "
            f"them together err in at most {100 * plan.level * len(plan.looks):.3g} %."
        )
    elif plan.runs is not None and plan.variants:
        counts = dict.fromkeys((one.label for one in plan.variants), 0)
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
