# SPDX-License-Identifier: GPL-2.0-or-later
"""A campaign of several workloads as a campaign of each: only runs of one are compared."""

from collections.abc import Iterable
from dataclasses import replace

from analysis.reading.load import Campaign, Run, first_described
from analysis.verdicts.choice import in_order


def by_workload(campaign: Campaign) -> list[Campaign]:
    """The campaign of each workload, that of the baseline first; of one workload the campaign.

    A variant is of the workload that its runs tell, or else of the first. What could not be read of
    the campaign itself is among the problems of the first.
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
    planned = {one.label: one for one in campaign.plan.variants}
    # A variant without a run, which only the plan knows, is where its workload's others are.
    of_campaign = {one.workload: named[label] for label, one in planned.items() if named.get(label)}
    for label, one in planned.items():
        if label not in runs:
            groups[of_campaign.get(one.workload) or first].append(label)
    known = {variant for variants in groups.values() for variant in variants}
    return [
        _part(campaign, set(variants) if name != first else set(variants) | _rest(campaign, known))
        for name, variants in groups.items()
    ]


def _name(runs: Iterable[Run]) -> str | None:
    """The workload of one variant's runs; None if nothing can be read of any."""
    told = [run for run in runs if run.meta]
    return first_described(told).workload.name if told else None


def _rest(campaign: Campaign, known: set[str]) -> set[str]:
    """The variants that only runs without an end know, and what is named beside them."""
    return {_variant(name) for name in (*campaign.incomplete, *campaign.set_aside)} - known


def _variant(name: str) -> str:
    """Of 'variant/number (why)'."""
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
            variants=tuple(one for one in plan.variants if one.label in variants),
            baseline=plan.baseline if plan.baseline in variants else None,
        ),
        configs={one: text for one, text in campaign.configs.items() if one in variants},
        problems=campaign.problems if first else [],
        pooled=campaign.pooled if first else [],
    )
