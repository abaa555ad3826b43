# SPDX-License-Identifier: GPL-2.0-or-later
"""Samples, comparisons and verdicts: what is said of a variant's runs against the baseline's."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from analysis.figures.metrics import Metric
from analysis.reading.facts import block
from analysis.reading.load import Run

# The last two: of remedies only (analysis.verdicts.felt).
Word = Literal["regressed", "improved", "equivalent", "undecided", "trades", "idle"]
MANY = 101  # more_runs: more than 100, which nobody waits for
# Values of the variant, of the baseline; if runs were not done, also what they are at most; if they
# are of several hosts' clocks, what they are at most and the numbers of the hosts.
Rows = tuple[tuple[float, ...], ...]


@dataclass(frozen=True)
class Sample:
    """One metric over the runs of one variant that count; values[i] is of run numbers[i]."""

    values: tuple[float, ...]  # infinite: the run failed
    numbers: tuple[int, ...] = ()
    orders: tuple[int | None, ...] = ()  # place in the order in which the campaign ran
    missing: int = 0  # runs that count, for which the metric is not available
    cut: tuple[bool, ...] = ()  # whether values[i] is of a run that was not done: at least so much
    cut_missing: int = 0  # of the missing runs those that were not done
    hosts: tuple[str, ...] = ()  # analysis.reading.facts.block of each value's run

    @classmethod
    def over(
        cls,
        runs: Sequence[Run],
        values: Iterable[float | None],
        is_cut: Callable[[Run], bool] = lambda _: False,
    ) -> "Sample":
        """Of runs that count, and their values; is_cut: whether a run was not done."""
        each = zip(values, runs, strict=True)
        known = [(value, run) for value, run in each if value is not None]
        cut = tuple(is_cut(run) for _, run in known)
        return cls(
            tuple(value for value, _ in known),
            tuple(run.number for _, run in known),
            tuple(run.order for _, run in known),
            len(runs) - len(known),
            cut if any(cut) else (),
            sum(map(is_cut, runs)) - sum(cut),
            tuple(block(run) for _, run in known),
        )

    @property
    def runs(self) -> int:
        """How many runs count, those without a value too."""
        return len(self.values) + self.missing

    @cached_property
    def most(self) -> tuple[float, ...]:
        """What the values are at most: of a run that was not done, anything."""
        if not self.cut:
            return self.values
        each = zip(self.values, self.cut, strict=True)
        return tuple(math.inf if cut else value for value, cut in each)

    @cached_property
    def known(self) -> tuple[float, ...]:
        """The values of the runs that did not fail, also those that are at least so much."""
        return tuple(value for value in self.values if math.isfinite(value))

    @cached_property
    def ended(self) -> tuple[float, ...]:
        """The values of the runs that ended by themselves."""
        if not self.cut:
            return self.known
        return tuple(value for value in self.most if math.isfinite(value))

    @property
    def failed(self) -> int:
        """How many of the runs failed."""
        return len(self.values) - len(self.known)

    @property
    def unfinished(self) -> int:
        """How many of the runs were not done at their limit."""
        return sum(self.cut) + self.cut_missing

    @cached_property
    def mean(self) -> float | None:
        """Of the runs that did not fail; None if all did. At least so much if some were cut."""
        return math.fsum(self.known) / len(self.known) if self.known else None

    @cached_property
    def sd(self) -> float | None:
        """Standard deviation between the runs that ended; None with fewer than two."""
        if len(self.ended) < 2:
            return None
        mean = math.fsum(self.ended) / len(self.ended)
        squares = math.fsum((value - mean) ** 2 for value in self.ended)
        return math.sqrt(squares / (len(self.ended) - 1))

    @property
    def median(self) -> float | None:
        """Of the runs that ended; None if none did."""
        ordered = sorted(self.ended)
        middle = len(ordered) // 2
        if not ordered:
            return None
        return ordered[middle] if len(ordered) % 2 else sum(ordered[middle - 1 : middle + 1]) / 2


def hosts_of(sample: Sample, base: Sample) -> Rows:
    """The number of the host of each value, of both; empty if all can be compared with all."""
    names = sorted({*sample.hosts, *base.hosts})
    if len(names) < 2:
        return ()
    return tuple(tuple(float(names.index(host)) for host in of.hosts) for of in (sample, base))


@dataclass(frozen=True)
class Comparison:
    """One metric of one variant against the baseline's, or the spread of it between runs."""

    metric: Metric
    variant: str
    base: Sample
    sample: Sample
    ratio: float | None = None  # median over all pairs of runs (spread: of the sd's)
    bound: str = ""  # ">=" or "<=": since runs were not done, the ratio is only a bound of it
    low: float | None = None  # of the ratios that the test does not reject; None: no lower bound
    high: float | None = None  # None: no upper bound
    tested: float | None = None  # level that Holm's correction left for this one
    p: float | None = None
    p_adjusted: float | None = None  # Holm's, in its family
    delta: float | None = None  # Cliff's: +1 if every run is worse than every one of the baseline
    verdict: Word = "undecided"
    why: str = ""  # one sentence
    more_runs: int | None = None  # undecided: about so many more of each would decide, at most MANY
    least_runs: int | None = None  # undecided, too few to tell more_runs: so many of each at least
    p_equivalent: float | None = None  # of a ratio outside the margin, corrected as p is
    smallest: float | None = None  # p that so many runs could give
    needed: float | None = None  # p that this one needs in its family
    level: float = 0.05
    margin: float = 0.1
    lost: float = 0.0  # programs killed, mean of a run; of a campaign with remedies
    base_lost: float = 0.0  # the baseline's

    @property
    def differs(self) -> bool:
        """Whether a difference is established."""
        return self.p_adjusted is not None and self.p_adjusted <= self.level

    @property
    def within_hosts(self) -> bool:
        """Whether the runs are of several hosts' clocks, and compared within each of them only."""
        return bool(hosts_of(self.sample, self.base))

    @property
    def all_failed(self) -> bool:
        """Whether there are runs of both, and all of them failed."""
        both = (self.base, self.sample)
        return all(one.values and not one.known for one in both)

    @property
    def none_ended(self) -> bool:
        """Whether there are runs of both, and none ended: more that are alike decide nothing."""
        both = (self.base, self.sample)
        return all(one.values and not one.ended for one in both)

    @property
    def too_few(self) -> bool:
        """Whether so many runs can reach no verdict, whatever they measure."""
        return self.smallest is None or self.needed is None or self.smallest > self.needed


@dataclass(frozen=True)
class Failures:
    """Runs that failed (hung, panicked, oom, lost), by Fisher's exact test."""

    variant: str
    failed: int
    runs: int
    base_failed: int
    base_runs: int
    p: float
    p_adjusted: float
    verdict: Word
