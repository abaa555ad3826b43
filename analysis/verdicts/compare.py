# SPDX-License-Identifier: GPL-2.0-or-later
"""Which kernel stalls more: a campaign's variants against its baseline, and how sure that is.

docs/explain/verdicts.md explains what a verdict means and how often it is wrong.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from analysis.figures import observer_faults
from analysis.figures.metrics import Metric, counted, failed, measure, metrics_of, unfinished
from analysis.reading import facts
from analysis.reading.load import Campaign, Run, first_described
from analysis.reading.words import safe_line
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
from analysis.verdicts.slow_keys import Shares, slow_keys_sentence
from analysis.verdicts.verdict import Comparison, Failures, Limited, Sample
from contract.plan import Plan
from contract.workload import STALLED, Description
from errors import Exit, UserError


@dataclass(frozen=True)
class _Group:
    """The runs of a workload, before they are judged; `variants`: the baseline first."""

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
        """The runs of each variant paired with the baseline's, except the baseline itself."""
        samples = self.samples[metric.key]
        return [
            Pair(metric, variant, samples[self.base], samples[variant]) for variant in self.others
        ]


def compare(
    campaign: Campaign,
    *,
    baseline: str | Sequence[str] | None = None,
    force: bool = False,
    causes: Mapping[Path, RunCauses] | None = None,
    counters: vmstat.Figures | None = None,
) -> Compared:
    """The verdicts of a campaign; UserError names a fact that differs between its runs.

    Only runs of the same workload are compared, but a correction counts the comparisons of all
    workloads. `baseline`: a variant, or a variant of each workload. `causes`, `counters`: the
    results of `collect` of analysis.verdicts.cause_table and .vmstat, if they are known already.
    """
    parts = by_workload(campaign)
    differing = [facts.differences(list(filter(counted, part.runs))) for part in parts]
    if (differences := [fact for group in differing for fact in group]) and not force:
        more = f" (and {len(differences) - 1} more)" if len(differences) > 1 else ""
        raise UserError(f"{differences[0]}{more}", hint="--force compares them all the same")
    asked = _baselines(parts, [baseline] if isinstance(baseline, str) else baseline or ())
    why = cause_table.collect(campaign) if causes is None else causes
    groups = [_group(*group, why) for group in zip(parts, differing, asked, strict=True)]
    figures = vmstat.collect(campaign) if counters is None else counters
    first, *others = _judged(groups, campaign, figures)
    return replace(first, others=others)


def _baselines(parts: Sequence[Campaign], asked: Sequence[str]) -> list[str | None]:
    """The baseline of each part; a label that no part has counts as the first part's."""
    baselines: list[str | None] = [None] * len(parts)
    for label in asked:
        known = [label in {*part.variants(), *(run.label for run in part.runs)} for part in parts]
        shown = [label in display_labels(part).values() for part in parts]
        baselines[[*known, *shown, True].index(True) % len(parts)] = label
    return baselines


def _group(
    campaign: Campaign, differing: list[str], baseline: str | None, causes: cause_table.Causes
) -> _Group:
    runs = [run for run in campaign.runs if counted(run)]
    notes = notes_of.of_runs(campaign, runs)
    by_variant = observer_faults.trusted(campaign.variants())
    judged = replace(
        campaign, runs=[run for variant_runs in by_variant.values() for run in variant_runs]
    )
    variants = _ordered(campaign, baseline, notes)
    named = display_labels(campaign)
    labels = {variant: named[variant] for variant in variants}
    notes += notes_of.in_blocks(by_variant, variants)
    notes += cause_table.notes(campaign, causes, labels)
    why = cause_table.cause_table(judged, variants, labels, causes)
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
    """The verdicts of each group; the primary metrics of all groups are one family of tests.

    All spreads, all secondary metrics and all failures are a family each, too.
    """
    level, margin = whole.plan.level, whole.plan.margin
    first = [pair for one in groups for pair in one.pairs(one.metrics[0])]
    runs = {name: variant_runs for one in groups for name, variant_runs in one.by_variant.items()}
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
            [*group.notes, *notes_of.to_limit([primary[one] for one in group.others]), *note],
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
    for variant, comparison in primary.items():
        answers[variant] = sentence(
            labels[variant],
            labels[base],
            comparison,
            spread[variant],
            failures[variant],
            (felt.get(variant), with_base),
        )
    shares = {variant: _shares_of_all(group, variant, felt[variant]) for variant in felt}
    for variant, comparison in primary.items():
        both = shares.get(variant, {}), shares.get(base, {})
        of_keys = slow_keys_sentence(comparison.verdict, labels[base], *both)
        answers[variant] = answers[variant].and_then(of_keys)
    blamed = {}
    if metric.key == STALLED:  # causes are parts of the stalled seconds
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


def _shares_of_all(group: _Group, variant: str, felt: Felt) -> Shares:
    """The variant's shares of slow keys, if every run that counts has one."""
    return {
        key: shares
        for key, shares in felt.keys.items()
        if key in group.samples and len(shares) == group.samples[key][variant].runs
    }


def _ordered(campaign: Campaign, asked: str | None, notes: list[str]) -> list[str]:
    """The variants that have runs: the baseline, then those planned, then the others."""
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
                f"The plan's baseline {safe_line(wanted, 60)} has no run: compared with "
                f"{safe_line(base, 60)}."
            )
    return [base, *(name for name in names if name != base)]


def _asked(campaign: Campaign, names: list[str], asked: str) -> str:
    """The variant whose folder has this name, or else the variant with this label."""
    there, shown = campaign.variants(), display_labels(campaign)
    matches = [name for name in names if asked in (there[name][0].label, shown[name])]
    matches = [asked] if asked in names else matches
    if len(matches) == 1:
        return matches[0]
    if matches:
        raise UserError(
            f"{len(matches)} variants are called {safe_line(asked, 60)!r}",
            hint=f"name one by its folder: {safe_line(', '.join(matches))}",
            status=Exit.USAGE,
        )
    known = safe_line(", ".join(names))
    raise UserError(
        f"--baseline {safe_line(asked, 60)}: no such variant with a run that counts",
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
        limited = Limited.of(runs)
        for key, of_variants in samples.items():
            of_variants[variant] = Sample.over(
                runs, [of_run[key] for of_run in figures], unfinished, limited
            )
    return samples


def _ends(by_variant: dict[str, list[Run]], variants: list[str]) -> dict[str, Sample]:
    """How the runs ended: math.inf for runs that failed, 0 for the others."""
    runs = {variant: list(filter(counted, by_variant[variant])) for variant in variants}
    return {
        variant: Sample.over(counting, (math.inf if failed(run) else 0.0 for run in counting))
        for variant, counting in runs.items()
    }


def _with_disturbed(
    groups: Sequence[_Group], primary: Mapping[str, Comparison], plan: Plan
) -> Iterator[list[str]]:
    """For each group the note on runs with disturbed observers, and what they would change."""
    bad = [
        [
            f"{run.variant}/{run.number} ({', '.join(why)})"
            for runs in group.campaign.variants().values()
            for run in runs
            if (why := observer_faults.of_run(run))
        ]
        for group in groups
    ]
    again: dict[str, Comparison] = {}
    if any(bad):
        pairs = [pair for group in groups for pair in _whole(group).pairs(group.metrics[0])]
        comparisons = judge(pairs, level=plan.level, margin=plan.margin)
        again = {comparison.variant: comparison for comparison in comparisons}
    for group, names in zip(groups, bad, strict=True):
        if not names:
            yield []
            continue
        text = f"Observers disturbed, in no verdict: {safe_line(', '.join(names), 1000)}."
        others = [
            f"{safe_line(group.labels[variant], 60)} would be {again[variant].verdict}"
            for variant in group.others
            if again[variant].verdict != primary[variant].verdict
        ]
        if group.others:
            changed = f"{', '.join(others)}." if others else "every verdict would be the same."
            text += f" With them {changed}"
        yield [text]


def _whole(group: _Group) -> _Group:
    """The group with all its runs, also those with disturbed observers."""
    metric = group.metrics[0]
    whole = _samples(group.campaign.variants(), group.variants, [metric])
    return replace(group, samples=whole)
