# SPDX-License-Identifier: GPL-2.0-or-later
"""A judged campaign: its samples, verdicts and notes."""

from dataclasses import dataclass, field, replace

from analysis.figures.metrics import Metric
from analysis.reading.load import Campaign
from analysis.verdicts.blame import Blame
from analysis.verdicts.cause_table import CauseTable
from analysis.verdicts.felt import Felt
from analysis.verdicts.sentences import Answer
from analysis.verdicts.verdict import Comparison, Failures, Sample
from analysis.verdicts.vmstat import KernelCounters
from contract.workload import Description


@dataclass(frozen=True)
class Compared:
    """A judged campaign; every dict is by variant, without the baseline unless noted.

    With a single variant there are samples only. With several workloads this is the first of them:
    `campaign` has only its runs, and the other workloads are in `others`, judged together with it.
    """

    campaign: Campaign
    whole: Campaign  # the campaign with all workloads
    baseline: str
    variants: list[str]  # baseline first, then as planned
    labels: dict[str, str]
    primary: dict[str, Comparison]
    spread: dict[str, Comparison]  # of the primary metric between runs; `ratio` is of the sd
    failures: dict[str, Failures]
    secondary: dict[str, dict[str, Comparison]]  # metric key, variant; exploratory
    samples: dict[str, dict[str, Sample]]  # metric key, variant; the baseline too
    notes: list[str]
    forced: list[str]  # differing facts that --force overrode; empty: comparable
    answers: dict[str, Answer]  # the baseline too
    level: float  # the significance level of each look, 0 to 1
    workload: Description  # the baseline's
    metrics: tuple[Metric, ...]  # of that workload, the primary metric first
    causes: CauseTable = field(default_factory=lambda: CauseTable({}))
    blame: dict[str, Blame] = field(default_factory=dict)  # variants that regressed or improved
    felt: dict[str, Felt] = field(default_factory=dict)  # the baseline too; desktop workloads only
    counters: KernelCounters = field(default_factory=KernelCounters)
    others: list["Compared"] = field(default_factory=list)

    @property
    def metric(self) -> Metric:
        """The primary metric, which the verdicts are about."""
        return self.metrics[0]

    def of(self, metric: Metric) -> dict[str, Comparison]:
        """The comparisons by this metric, which may be any of `metrics`."""
        return self.primary if metric.key == self.metric.key else self.secondary[metric.key]

    @property
    def sentences(self) -> dict[str, str]:
        """The answers as texts."""
        return {variant: answer.text for variant, answer in self.answers.items()}

    @property
    def each(self) -> list["Compared"]:
        """A `Compared` for each workload, without `others`."""
        return [replace(self, others=[]), *self.others]

    @property
    def sure(self) -> bool:
        """Whether every comparison of a primary metric, in every workload, is decided."""
        comparisons = [verdict for one in self.each for verdict in one.primary.values()]
        return all(one.verdict != "undecided" for one in comparisons)
