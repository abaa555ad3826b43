# SPDX-License-Identifier: GPL-2.0-or-later
"""Several campaigns as one, if their facts agree (docs/guides/compare-kernels.md).

On the guest's clock a run is the same on every host and in every night, so the facts alone decide
whether two campaigns may be compared.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from analysis.figures.metrics import counted
from analysis.reading import facts
from analysis.reading.copies import identity
from analysis.reading.load import Campaign, Run, load_campaign
from analysis.reading.words import first_names, plural, safe_line
from analysis.verdicts.by_workload import by_workload
from contract.levels import can_decide
from contract.plan import Plan
from errors import UserError

NAMED = 4  # runs that a line names at most


def load_pool(paths: Sequence[Path], *, force: bool = False) -> Campaign:
    """The pooled campaign of these folders or bundles; UserError names a fact that differs."""
    return pool([load_campaign(path) for path in paths], [str(path) for path in paths], force=force)


def pool(campaigns: Sequence[Campaign], names: Sequence[str], *, force: bool = False) -> Campaign:
    """All runs of the campaigns as those of one campaign; a single campaign stays as it is.

    Runs of a variant that an earlier campaign has are numbered after the earlier runs. A run that
    occurs twice (same variant, seed and bytes) counts once.
    """
    if len(campaigns) == 1:
        return campaigns[0]
    pooled = _Pool()
    for campaign, name in zip(campaigns, names, strict=True):
        pooled.add(campaign, safe_line(name, 100))
    if not force:
        _refuse_other_facts(pooled, campaigns, names)
    return pooled.campaign(campaigns)


class _Pool:
    """The runs of the campaigns added so far."""

    def __init__(self) -> None:
        self.runs: list[Run] = []
        self.names: list[str] = []
        self.of_campaign: list[list[Run]] = []
        self._known: dict[tuple[str, str], str] = {}  # variant and bytes: where the run is
        self._seeds: dict[tuple[str, Any], str] = {}  # variant and seed: where the first run is
        self._last: Counter[str] = Counter()  # the largest number of each variant
        self._order = 0
        self.begun: list[dict[str, Any]] = []  # [[run]] of the plans
        self.judged: list[int] = []  # runs of a variant, before a campaign added more
        self.notes: list[str] = []

    def add(self, campaign: Campaign, name: str) -> None:
        """Add the campaign's runs."""
        had = Counter(run.variant for run in self.runs if counted(run))
        begun = {(e.get("variant"), e.get("number")): e for e in _begun(campaign.plan)}
        before = Counter(self._last)
        new: list[Run] = []
        twice: list[str] = []
        alike: list[str] = []
        known: dict[tuple[str, str], str] = {}
        for run in campaign.runs:
            where = f"{safe_line(run.variant, 60)}/{run.number} of {name}"
            key = (run.variant, identity(run) or where)
            if key in self._known:
                twice.append(f"{where} is {self._known[key]}")
                continue
            known.setdefault(key, where)
            if (seed := run.fact("seed")) is not None:
                first = self._seeds.setdefault((run.variant, repr(seed)), where)
                alike += [f"{where} and {first}"] if first != where else []
            number = run.number + before[run.variant]
            self._last[run.variant] = max(self._last[run.variant], number)
            order = None if run.order is None else run.order + self._order
            new.append(replace(run, number=number, order=order))
            if entry := begun.get((run.variant, run.number)):
                self.begun.append({**entry, "number": number})
        self._known |= known
        grown = {run.variant for run in new} & had.keys()
        if grown and can_decide(runs := min(had.values()), max(had.values())):
            self.judged.append(runs)
        self._order = max([self._order, *(run.order or 0 for run in new)])
        self.runs += new
        self.names.append(name)
        self.of_campaign.append(new)
        self._tell(name, new, before)
        if twice:
            again = "is" if len(twice) == 1 else "are"
            self.notes.append(
                f"{plural(len(twice), 'run')} of {name} {again} there already, with the same "
                f"variant, seed and bytes, and counted once: {twice[0]}."
            )
        if alike:
            self.notes.append(
                f"{plural(len(alike), 'run')} of {name} with the variant and seed of an earlier "
                f"run, but other bytes, counted: {alike[0]}."
            )

    def _tell(self, name: str, new: list[Run], before: Counter[str]) -> None:
        moved = [
            f"{safe_line(run.variant, 60)}/{run.number - before[run.variant]} is {run.number} here"
            for run in new
            if before[run.variant]
        ]
        renumbered = f" ({first_names(moved, NAMED)})" if moved else ""
        self.notes.append(f"Pooled: {plural(len(new), 'run')} of {name}{renumbered}.")

    def campaign(self, campaigns: Sequence[Campaign]) -> Campaign:
        """The pooled campaign."""
        first = campaigns[0]
        variants = {
            one.label: one for pooled in reversed(campaigns) for one in pooled.plan.variants
        }
        order = dict.fromkeys(one.label for pooled in campaigns for one in pooled.plan.variants)
        baselines = [one.plan.baseline for one in campaigns if one.plan.baseline]
        earlier = max((one.plan.extended for one in campaigns), key=len)
        if any(one.plan.looks for one in campaigns) and not self.judged:
            self.judged.append(max(look for one in campaigns for look in one.plan.looks))
        plan = Plan(
            baseline=baselines[0] if baselines else None,
            margin=first.plan.margin,
            alpha=first.plan.alpha,
            extended=(*earlier, *self.judged),
            variants=tuple(variants[label] for label in order),
            tables={"run": self.begun},
        )

        def named(texts: Sequence[str], name: str) -> list[str]:
            return [f"{text} in {name}" for text in texts]

        pooled = list(zip(campaigns, self.names, strict=True))
        places = {label: place for place, label in enumerate(order)}
        return Campaign(
            first.path,
            sorted(self.runs, key=lambda run: places.get(run.variant, len(places))),
            [one for campaign, name in pooled for one in named(campaign.incomplete, name)],
            [one for campaign, name in pooled for one in named(campaign.set_aside, name)],
            plan,
            {label: text for one in reversed(campaigns) for label, text in one.configs.items()},
            {label: text for one in reversed(campaigns) for label, text in one.changes.items()},
            [one for campaign, name in pooled for one in named(campaign.problems, name)],
            pooled=self.notes,
        )


def _begun(plan: Plan) -> list[dict[str, Any]]:
    entries = plan.tables.get("run", [])
    return [e for e in entries if isinstance(e, dict)] if isinstance(entries, list) else []


def _refuse_other_facts(pooled: _Pool, campaigns: Sequence[Campaign], names: Sequence[str]) -> None:
    first = campaigns[0].plan
    for campaign, name in zip(campaigns, names, strict=True):
        for what in ("margin", "alpha"):
            mine, its = getattr(first, what), getattr(campaign.plan, what)
            if mine != its:
                raise _refusal(name, names[0], f"{what} differs: {mine} and {its}")
    if not _differences(campaigns, pooled.runs):
        return
    runs: list[Run] = []
    for new, name in zip(pooled.of_campaign, names, strict=True):
        if differences := _differences(campaigns, [*runs, *new]):
            if _differences(campaigns, new):
                return  # the campaign's own runs differ: its comparison reports that
            raise _refusal(name, names[0], differences[0])
        runs += new


def _differences(campaigns: Sequence[Campaign], runs: list[Run]) -> list[str]:
    whole = replace(campaigns[0], runs=[run for run in runs if counted(run)])
    return [line for part in by_workload(whole) for line in facts.differences(part.runs)]


def _refusal(name: str, first: str, why: str) -> UserError:
    hint = "leave it out, or --force compares them all the same"
    return UserError(f"{name} cannot be pooled with {first}: {why}", hint=hint)
