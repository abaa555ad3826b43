# SPDX-License-Identifier: GPL-2.0-or-later
"""What a campaign that was judged holds."""

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
    """A campaign judged; every dict is by variant, and none of them but samples has the baseline.

    With one variant there are samples only. Of several workloads it is the first one's: `campaign`
    has its runs only, and the others are in `others`, judged together with it.
    """

    campaign: Campaign
    whole: Campaign  # the same, but of all workloads
    baseline: str
    variants: list[str]  # baseline first, then as planned
    labels: dict[str, str]
    primary: dict[str, Comparison]
    spread: dict[str, Comparison]  # of the primary metric between runs; ratio is of the sd
    failures: dict[str, Failures]
    secondary: dict[str, dict[str, Comparison]]  # metric key, variant; exploratory
    samples: dict[str, dict[str, Sample]]  # metric key, variant; the baseline too
    notes: list[str]
    forced: list[str]  # differing facts that --force overrode; empty: comparable
    answers: dict[str, Answer]  # one for each variant, the baseline too
    level: float  # of each look
    workload: Description  # the baseline's
    metrics: tuple[Metric, ...]  # of that workload, the primary one first
    causes: CauseTable = field(default_factory=lambda: CauseTable({}))
    blame: dict[str, Blame] = field(default_factory=dict)  # of those that regressed or improved
    felt: dict[str, Felt] = field(default_factory=dict)  # the baseline too; desktops' loads only
    counters: KernelCounters = field(default_factory=KernelCounters)
    others: list["Compared"] = field(default_factory=list)

    @property
    def metric(self) -> Metric:
        """The primary metric: what the verdicts are about."""
        return self.metrics[0]

    def of(self, metric: Metric) -> dict[str, Comparison]:
        """The comparisons by this metric, the primary one or another."""
        return self.primary if metric.key == self.metric.key else self.secondary[metric.key]

    @property
    def sentences(self) -> dict[str, str]:
        """The answers as texts."""
        return {variant: answer.text for variant, answer in self.answers.items()}

    @property
    def each(self) -> list["Compared"]:
        """What is judged of each workload, by itself."""
        return [replace(self, others=[]), *self.others]

    @property
    def sure(self) -> bool:
        """Whether every comparison of a primary metric has a verdict, of every workload."""
        found = [verdict for one in self.each for verdict in one.primary.values()]
        return all(one.verdict != "undecided" for one in found)
