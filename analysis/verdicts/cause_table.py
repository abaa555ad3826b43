# SPDX-License-Identifier: GPL-2.0-or-later
"""Stalled seconds by cause, over the runs of each variant that ended and have evidence.

Of a variant of which no run was done: over those that were not done at their limit, up to it. A run
without evidence is missing, never zero. Reports show a cause as part of "other" if it has no
more than the share SMALL of any variant's stalled seconds; unexplained time is always shown.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from analysis.figures import failed_allocations
from analysis.figures.metrics import Metric, counted, failed, lost, unfinished
from analysis.reading.load import Campaign, Run
from analysis.reading.processes import done_to_each
from analysis.reading.words import first_names, plural, safe_line
from analysis.stall_causes import run_causes
from analysis.stall_causes.causes import CAUSES, UNEXPLAINED, RunCauses
from analysis.verdicts import stored_causes
from analysis.verdicts.choice import SHOWN
from analysis.verdicts.verdict import Limited, Sample
from contract.run_files import BLOCKED, TASKS, TRACE

SMALL = 0.01  # share of a variant's stalled seconds
LEAST = 0.05  # s: less is shown as 0.0
OTHER = "other"
ENDED_WITH_EVIDENCE = "that ended and have evidence"  # the runs that figures are of
FIGURE = re.compile(r"\d[\d.,]*")  # notes that differ only in figures are shown once
METRICS = {
    cause.key: Metric(f"cause-{cause.key}", f"stalled seconds: {cause.short}", "s", 1)
    for cause in CAUSES
}
SHORT = {cause.key: cause.short for cause in CAUSES} | {OTHER: OTHER}
Causes = Mapping[Path, RunCauses]  # by the run's folder, which no redaction renames


@dataclass(frozen=True)
class CauseTable:
    """Why the runs of a campaign stalled. `samples`: by cause, then variant; all of CAUSES.

    `apart`: for each variant whether its runs tell dm-crypt from the disk; both, if only some do.
    `to_limit`: the variants of which no run was done, so that their seconds are lower bounds.
    """

    runs: Causes
    variants: list[str] = field(default_factory=list)
    labels: dict[str, str] = field(default_factory=dict)
    samples: dict[str, dict[str, Sample]] = field(default_factory=dict)
    apart: dict[str, frozenset[bool]] = field(default_factory=dict)
    to_limit: frozenset[str] = frozenset()

    def of(self, run: Run) -> RunCauses | None:
        """The causes of this run's stalls; None if it has no evidence."""
        return self.runs.get(run.path)

    @cached_property
    def which_runs(self) -> str:
        """Which runs the figures are of: 'that ended and have evidence', and exceptions."""
        words = ENDED_WITH_EVIDENCE
        labels = [
            safe_line(self.labels[name], 40) for name in self.variants if name in self.to_limit
        ]
        if labels:
            words += f"; of {first_names(labels, SHOWN)}, where no run was done, up to the limit"
        return words

    @cached_property
    def total(self) -> dict[str, float | None]:
        """Mean stalled seconds of a run, by variant; None if no run of it has evidence."""
        return {variant: self._sum(variant, list(SHORT)) for variant in self.variants}

    @cached_property
    def no_stall(self) -> bool:
        """Whether no run with evidence has a stall, also of variants that are not shown."""
        all_values = [sample.values for of in self.samples.values() for sample in of.values()]
        return any(all_values) and not any(value > 0 for values in all_values for value in values)

    @cached_property
    def shown(self) -> list[str]:
        """The causes that have a row: large ones, "other" if there are others, "unexplained"."""
        small = self.samples.keys() - {UNEXPLAINED}
        for variant, total in self.total.items():
            if total:
                small -= {
                    key for key in small if (self.samples[key][variant].mean or 0.0) > SMALL * total
                }
        kept = [key for key in self.samples if key not in small and key != UNEXPLAINED]
        rest = any(
            max(sample.values, default=0.0) >= LEAST
            for key in small
            for sample in self.samples[key].values()
        )
        return [*kept, *([OTHER] if rest else []), UNEXPLAINED]

    def mean(self, key: str, variant: str) -> float | None:
        """Mean stalled seconds of a run from a cause in `shown`; None if no run has evidence."""
        if key == OTHER:
            return self._sum(variant, [cause for cause in self.samples if cause not in self.shown])
        return self.samples[key][variant].mean

    def _sum(self, variant: str, keys: Sequence[str]) -> float | None:
        means = [self.samples[key][variant].mean for key in keys if key in self.samples]
        known = [mean for mean in means if mean is not None]
        return sum(known) if known else None


def collect(campaign: Campaign) -> dict[Path, RunCauses]:
    """Why each run stalled, from its evidence, or else from a bundle's causes.json.

    Uses several processes for many runs. They also look for failed allocations while the evidence
    is in memory (analysis.figures.failed_allocations).
    """
    known: dict[Path, RunCauses] = {}
    explained = done_to_each(campaign.runs, _explained)
    for run, (causes, failures) in zip(campaign.runs, explained, strict=True):
        failed_allocations.keep(run, failures)
        if causes is not None:
            known[run.path] = causes
    return known | stored_causes.stored(
        campaign, [run for run in campaign.runs if run.path not in known]
    )


def _explained(run: Run) -> tuple[RunCauses | None, failed_allocations.RunFailures]:
    evident = any((run.path / name).is_file() for name in (TASKS, BLOCKED, TRACE))
    return run_causes.run_causes(run) if evident else None, failed_allocations.look(run)


def cause_table(
    campaign: Campaign, variants: list[str], labels: dict[str, str], causes: Causes
) -> CauseTable:
    """The table of these variants; without samples if no run that ended by itself or at its limit
    has evidence.
    """
    if not causes:
        return CauseTable(causes)
    samples: dict[str, dict[str, Sample]] = {cause.key: {} for cause in CAUSES}
    apart: dict[str, frozenset[bool]] = {}
    to_limit: set[str] = set()
    by_variant = campaign.variants()
    for variant in variants:
        known = [run for run in by_variant.get(variant, []) if counted(run)]
        chosen = [run for run in known if not (failed(run) or unfinished(run))]
        is_cut = not chosen
        if is_cut:
            chosen = list(filter(unfinished, known))
        explained = [
            causes[run.path] if run in chosen and run.path in causes and not lost(run) else None
            for run in known
        ]
        if is_cut and any(explained):
            to_limit.add(variant)
        limited = Limited.of(known)
        apart[variant] = frozenset(why.apart for why in explained if why)
        for key, of_variants in samples.items():
            seconds = [None if why is None else why.seconds.get(key, 0.0) for why in explained]
            of_variants[variant] = Sample.over(known, seconds, unfinished, limited)
    if not any(sample.values for of in samples.values() for sample in of.values()):
        return CauseTable(causes)
    return CauseTable(causes, variants, labels, samples, apart, frozenset(to_limit))


def notes(campaign: Campaign, causes: Causes, labels: dict[str, str]) -> Iterator[str]:
    """Notes on the runs that have no evidence, and on what the evidence of others lacks."""
    runs = [run for run in campaign.runs if counted(run) and run.subjects]
    without = [run for run in runs if run.path not in causes]
    if len(without) == len(runs):
        if runs:
            yield "No evidence was recorded: why the programs stood still is not known."
        return
    if without:
        names = [f"{run.variant}/{run.number}" for run in without]
        yield (
            f"No evidence in {len(without)} of {plural(len(runs), 'run')}, which are in no figure "
            f"of a cause: {first_names(names, SHOWN, 1000)}."
        )
    kept = sum(causes[run.path].stored for run in runs if run.path in causes)
    if kept:
        yield (
            f"Causes of {plural(kept, 'run')} are those of the bundle's {stored_causes.NAME}: it "
            "has no evidence to compute them from."
        )
    lacking: dict[str, list[tuple[Run, str]]] = {}
    for run in runs:
        stalled = run.path in causes and causes[run.path].total > 0
        for note in causes[run.path].notes if stalled else ():
            text = safe_line(note, 300).rstrip(".")
            lacking.setdefault(FIGURE.sub("N", text), []).append((run, text))
    every = Counter(run.variant for run in runs if run.path in causes and causes[run.path].total)
    for cases in lacking.values():
        whose = Counter(run.variant for run, _ in cases)
        text = cases[0][1]
        same = all(text == other for _, other in cases)
        if same and all(whose[variant] == every[variant] for variant in whose):
            names = [labels.get(variant, variant) for variant in whose]
        else:
            names = [f"{run.variant}/{run.number}" for run, _ in cases]
        whose_figures = "" if same else f" (these figures: {names[0]})"
        yield f"Causes of {first_names(names, SHOWN, 1000)}: {text}{whose_figures}."
