# SPDX-License-Identifier: GPL-2.0-or-later
"""Which kernel stalls more: a campaign's variants against its baseline, and how sure that is.

docs/explain/verdicts.md tells what a verdict means and how often it errs.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from analysis.figures import observer_faults
from analysis.figures.metrics import Metric, counted, failed, measure, metrics_of, unfinished
from analysis.reading import facts
from analysis.reading.load import Campaign, Run, first_described
from analysis.reading.words import plain
from analysis.stall_causes.causes import RunCauses
from analysis.verdicts import cause_table, vmstat
from analysis.verdicts import notes as notes_of
from analysis.verdicts.blame import blame
from analysis.verdicts.by_workload import by_workload
from analysis.verdicts.choice import display_labels
from analysis.verdicts.compared import Compared
from analysis.verdicts.felt import Felt, felt_with, with_losses
from analysis.verdicts.judge import Pair, judge, judge_failures, judge_spread
from analysis.verdicts.sentences import alone, sentence
from analysis.verdicts.verdict import Comparison, Failures, Sample
from contract.plan import Plan
from contract.workload import STALLED, Description
from errors import Exit, UserError


@dataclass(frozen=True)
class _Group:
    """The runs of one workload, before they are judged; `variants`: the baseline first."""

    campaign: Campaign
    differing: list[str]
    notes: list[str]
    by_variant: dict[str, list[Run]]
    variants: list[str]
    labels: dict[str, str]
    why: cause_table.CauseTable
    workload: Description
    metrics: tuple[Metric, ...]
    samples: dict[str, dict[str, Sample]]

    @property
    def base(self) -> str:
        return self.variants[0]

    @property
    def others(self) -> list[str]:
        return self.variants[1:]

    def pairs(self, metric: Metric) -> list[Pair]:
        """Each variant's runs with the baseline's."""
        of = self.samples[metric.key]
        return [Pair(metric, one, of[self.base], of[one]) for one in self.others]


def compare(
    campaign: Campaign,
    *,
    baseline: str | Sequence[str] | None = None,
    force: bool = False,
    causes: Mapping[Path, RunCauses] | None = None,
    counters: vmstat.Figures | None = None,
) -> Compared:
    """The verdicts of a campaign; UserError names the fact in which its runs differ.

    Only runs of one workload are compared, but each correction counts all that is. `baseline`: a
    variant, or several, each of another workload. `causes`, `counters`: what `collect` of
    analysis.verdicts.cause_table and .vmstat finds, if it is known already.
    """
    parts = by_workload(campaign)
    differing = [facts.differences(list(filter(counted, part.runs))) for part in parts]
    if (found := [one for each in differing for one in each]) and not force:
        more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
        raise UserError(f"{found[0]}{more}", hint="--force compares them all the same")
    asked = _baselines(parts, [baseline] if isinstance(baseline, str) else baseline or ())
    why = cause_table.collect(campaign) if causes is None else causes
    groups = [_group(*each, why) for each in zip(parts, differing, asked, strict=True)]
    figures = vmstat.collect(campaign) if counters is None else counters
    first, *others = _judged(groups, campaign, figures)
    return replace(first, others=others)


def _baselines(parts: Sequence[Campaign], asked: Sequence[str]) -> list[str | None]:
    """Which of those that were asked for is each part's; what is no part's is the first's."""
    found: list[str | None] = [None] * len(parts)
    for label in asked:
        known = [label in {*one.variants(), *(run.label for run in one.runs)} for one in parts]
        shown = [label in display_labels(one).values() for one in parts]
        found[[*known, *shown, True].index(True) % len(parts)] = label
    return found


def _group(
    campaign: Campaign, differing: list[str], baseline: str | None, found: cause_table.Causes
) -> _Group:
    runs = [run for run in campaign.runs if counted(run)]
    notes = notes_of.of_runs(campaign, runs)
    by_variant = observer_faults.trusted(campaign.variants())
    judged = replace(campaign, runs=[run for each in by_variant.values() for run in each])
    variants = _ordered(campaign, baseline, notes)
    named = display_labels(campaign)
    labels = {one: named[one] for one in variants}
    notes += notes_of.in_blocks(by_variant, variants)
    notes += cause_table.notes(campaign, found, labels)
    why = cause_table.cause_table(judged, variants, labels, found)
    of_base = [run for run in runs if run.variant == variants[0]]
    workload = first_described([*of_base, *campaign.runs]).workload
    metrics = metrics_of(workload)
    notes += notes_of.no_such_metric(workload, metrics[0])
    notes += notes_of.not_counted(metrics[0], list(filter(counted, campaign.runs)))
    samples = _samples(by_variant, variants, metrics)
    return _Group(
        campaign,
        differing,
        notes,
        by_variant,
        variants,
        labels,
        why,
        workload,
        metrics,
        samples,
    )


def _judged(
    groups: Sequence[_Group], whole: Campaign, figures: vmstat.Figures
) -> Iterator[Compared]:
    """The verdicts of each group; the primary metrics of all are one family, and so on."""
    level, margin = whole.plan.level, whole.plan.margin
    first = [pair for one in groups for pair in one.pairs(one.metrics[0])]
    runs = {name: each for one in groups for name, each in one.by_variant.items()}
    base_of = {name: one.base for one in groups for name in one.others}
    primary = {
        one.variant: with_losses(one, whole.plan, runs[one.variant], runs[base_of[one.variant]])
        for one in judge(first, level=level, margin=margin)
    }
    spread = {one.variant: one for one in judge_spread(first, level=level)}
    rest = [pair for one in groups for metric in one.metrics[1:] for pair in one.pairs(metric)]
    secondary: dict[str, dict[str, Comparison]] = {}
    for one in judge(rest, level=level, margin=margin):
        secondary.setdefault(one.metric.key, {})[one.variant] = one
    ends = {one.base: _ends(one.by_variant, one.variants) for one in groups}
    pairs = {v: (ends[one.base][v], ends[one.base][one.base]) for one in groups for v in one.others}
    failures = judge_failures(pairs, level=level)
    disturbed = _with_disturbed(groups, primary, whole.plan)
    for group, note in zip(groups, disturbed, strict=True):
        yield _compared(
            group,
            [*group.notes, *note],
            {one: primary[one] for one in group.others},
            {one: spread[one] for one in group.others},
            {one: failures[one] for one in group.others},
            {
                metric.key: {one: secondary[metric.key][one] for one in group.others}
                for metric in group.metrics[1:]
            },
            figures,
            whole,
        )


def _compared(
    group: _Group,
    notes: list[str],
    primary: dict[str, Comparison],
    spread: dict[str, Comparison],
    failures: dict[str, Failures],
    secondary: dict[str, dict[str, Comparison]],
    figures: vmstat.Figures,
    whole: Campaign,
) -> Compared:
    plan = whole.plan
    base, labels, metric = group.base, group.labels, group.metrics[0]
    of_base = group.samples[metric.key][base]
    felt: dict[str, Felt] = {}
    if metric.key == STALLED:
        felt = felt_with(group.samples, group.by_variant, group.variants, group.workload)
    with_base = felt.get(base)
    answers = {base: alone(labels[base], of_base, metric, bool(group.others), with_base)}
    for variant, one in primary.items():
        answers[variant] = sentence(
            labels[variant],
            labels[base],
            one,
            spread[variant],
            failures[variant],
            (felt.get(variant), with_base),
        )
    blamed = {}
    if metric.key == STALLED:  # what a cause has seconds of
        blamed = blame(group.why, base, primary, level=plan.level, margin=plan.margin)
    for variant, of_variant in blamed.items():
        answers[variant] = answers[variant].and_then(of_variant.sentence)
    return Compared(
        campaign=group.campaign,
        whole=whole,
        baseline=base,
        variants=group.variants,
        labels=labels,
        primary=primary,
        spread=spread,
        failures=failures,
        secondary=secondary,
        samples=group.samples,
        notes=notes,
        forced=group.differing,
        answers=answers,
        felt=felt,
        level=plan.level,
        workload=group.workload,
        metrics=group.metrics,
        causes=group.why,
        blame=blamed,
        counters=vmstat.kernel_counters(group.by_variant, group.variants, figures, plan.level),
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
            status=Exit.USAGE,
        )
    known = plain(", ".join(names))
    raise UserError(
        f"--baseline {plain(asked, 60)}: no such variant with a run that counts",
        hint=f"there are {known}",
        status=Exit.USAGE,
    )


def _samples(
    by_variant: dict[str, list[Run]], variants: list[str], metrics: Sequence[Metric]
) -> dict[str, dict[str, Sample]]:
    samples: dict[str, dict[str, Sample]] = {metric.key: {} for metric in metrics}
    for variant in variants:
        runs = [run for run in by_variant[variant] if counted(run)]
        figures = [measure(run, metrics) for run in runs]
        for key, of_variants in samples.items():
            of_variants[variant] = Sample.over(runs, [one[key] for one in figures], unfinished)
    return samples


def _ends(by_variant: dict[str, list[Run]], variants: list[str]) -> dict[str, Sample]:
    """How the runs ended: math.inf for those that failed, 0 for the others."""
    runs = {variant: list(filter(counted, by_variant[variant])) for variant in variants}
    return {
        variant: Sample.over(counting, (math.inf if failed(run) else 0.0 for run in counting))
        for variant, counting in runs.items()
    }


def _with_disturbed(
    groups: Sequence[_Group], primary: Mapping[str, Comparison], plan: Plan
) -> Iterator[list[str]]:
    """Which runs are in no verdict since their observers were disturbed; what they would change."""
    bad = [
        [
            f"{run.variant}/{run.number} ({', '.join(why)})"
            for runs in one.campaign.variants().values()
            for run in runs
            if (why := observer_faults.of_run(run))
        ]
        for one in groups
    ]
    again: dict[str, Comparison] = {}
    if any(bad):
        pairs = [pair for one in groups for pair in _whole(one).pairs(one.metrics[0])]
        again = {one.variant: one for one in judge(pairs, level=plan.level, margin=plan.margin)}
    for group, names in zip(groups, bad, strict=True):
        if not names:
            yield []
            continue
        text = f"Observers disturbed, in no verdict: {plain(', '.join(names), 1000)}."
        others = [
            f"{plain(group.labels[one], 60)} would be {again[one].verdict}"
            for one in group.others
            if again[one].verdict != primary[one].verdict
        ]
        if group.others:
            changed = f"{', '.join(others)}." if others else "every verdict would be the same."
            text += f" With them {changed}"
        yield [text]


def _whole(group: _Group) -> _Group:
    """The group with all of its runs."""
    metric = group.metrics[0]
    whole = _samples(group.campaign.variants(), group.variants, [metric])
    return replace(group, samples=whole)
