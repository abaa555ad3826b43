# SPDX-License-Identifier: GPL-2.0-or-later
"""Splits a campaign of several workloads: only runs of the same workload are compared."""

from collections.abc import Iterable
from dataclasses import replace

from analysis.reading.load import Campaign, Run, first_described
from analysis.verdicts.choice import in_order


def by_workload(campaign: Campaign) -> list[Campaign]:
    """A campaign for each workload, the baseline's first; the campaign itself if it has only one.

    A variant belongs to the workload that its runs name, or else to the first. The first campaign
    also has the problems in reading the whole campaign.
    """
    runs = campaign.variants()
    named = {variant: _name(of) for variant, of in runs.items()}
    groups: dict[str, list[str]] = {}
    for variant in in_order(campaign):
        if name := named[variant]:
            groups.setdefault(name, []).append(variant)
    if len(groups) < 2:
        return [campaign]
    first = next(iter(groups))
    groups[first] += [variant for variant in runs if not named[variant]]
    planned = {entry.label: entry for entry in campaign.plan.variants}
    # A planned variant without runs joins the other variants of its workload.
    of_campaign = {
        entry.workload: named[label] for label, entry in planned.items() if named.get(label)
    }
    for label, entry in planned.items():
        if label not in runs:
            groups[of_campaign.get(entry.workload) or first].append(label)
    known = {variant for variants in groups.values() for variant in variants}
    return [
        _part(campaign, set(variants) if name != first else set(variants) | _rest(campaign, known))
        for name, variants in groups.items()
    ]


def _name(runs: Iterable[Run]) -> str | None:
    """The workload of a variant's runs; None if no run has a readable meta.json."""
    described = [run for run in runs if run.meta]
    return first_described(described).workload.name if described else None


def _rest(campaign: Campaign, known: set[str]) -> set[str]:
    """The variants that only incomplete or repeated runs have."""
    return {_variant(name) for name in (*campaign.incomplete, *campaign.set_aside)} - known


def _variant(name: str) -> str:
    """The variant in 'variant/number (why)'."""
    return name.partition("/")[0]


def _part(campaign: Campaign, variants: set[str]) -> Campaign:
    first = in_order(campaign)[0] in variants
    plan = campaign.plan
    return replace(
        campaign,
        runs=[run for run in campaign.runs if run.variant in variants],
        incomplete=[name for name in campaign.incomplete if _variant(name) in variants],
        set_aside=[name for name in campaign.set_aside if _variant(name) in variants],
        plan=replace(
            plan,
            variants=tuple(variant for variant in plan.variants if variant.label in variants),
            baseline=plan.baseline if plan.baseline in variants else None,
        ),
        configs={
            variant: text for variant, text in campaign.configs.items() if variant in variants
        },
        problems=campaign.problems if first else [],
        pooled=campaign.pooled if first else [],
    )
