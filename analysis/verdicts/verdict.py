# SPDX-License-Identifier: GPL-2.0-or-later
"""Samples, comparisons and verdicts: a variant's runs against the baseline's."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from analysis.figures.metrics import ELAPSED, Metric, failed, lost, unfinished
from analysis.figures.stalls import stalled_after
from analysis.reading.facts import block
from analysis.reading.latency_log import number
from analysis.reading.load import Run

# Only remedies can have the last two (analysis.verdicts.felt).
Word = Literal["regressed", "improved", "equivalent", "undecided", "trades", "idle"]
MANY = 101  # of `more_runs`: more than 100, too many to wait for
SAME_LIMIT = 0.01  # share: runs that are ended at the same limit end within it
LATER = 1.0  # per cent of the second half of that time: less is no difference there
# Values of the variant and of the baseline; also their upper bounds if runs were not done; and
# both the upper bounds and the host numbers if the runs are timed by several hosts' clocks.
Rows = tuple[tuple[float, ...], ...]


@dataclass(frozen=True)
class Limited:
    """That no run of a sample was done: each failed, or was ended at the same limit.

    limit_s: seconds of a run. Means of the runs that did not fail and lost no line: `lines` that
    the subjects had printed by then, all together; `late`, for how much of the second half of that
    time those alive were frozen (per cent).
    """

    limit_s: float
    lines: float
    late: float

    @classmethod
    def of(cls, runs: Sequence[Run]) -> "Limited | None":
        """Of these runs, which count; None if one was done, all failed or the limits differ."""
        going = [run for run in runs if not failed(run)]
        ends = [number(run.status.get("elapsed_s")) or 0.0 for run in going]
        if not going or not all(map(unfinished, going)):
            return None
        whole = [run for run in going if not lost(run)]
        limit = max(ends)
        if not whole or min(ends) <= 0 or not _same_limit(min(ends), limit):
            return None
        lines = sum(len(stream.elapsed) for run in whole for stream in run.subjects)
        late = math.fsum(_frozen_after(run, limit / 2) for run in whole)
        return cls(limit, lines / len(whole), late / len(whole))


def _frozen_after(run: Run, begin: float) -> float:
    """Per cent of the time of the subjects that are alive after `begin` (elapsed s)."""
    alive = math.fsum(max(0.0, stream.until - begin) for stream in run.subjects)
    return 100 * stalled_after(run, begin) / alive if alive else 0.0


def _same_limit(limit: float, other: float) -> bool:
    return abs(limit - other) <= SAME_LIMIT * max(limit, other)


@dataclass(frozen=True)
class Sample:
    """A metric (in its unit) of a variant's runs that count; values[i] is of run numbers[i]."""

    values: tuple[float, ...]  # infinite: the run failed
    numbers: tuple[int, ...] = ()
    orders: tuple[int | None, ...] = ()  # place in the order in which the campaign ran
    missing: int = 0  # runs that count, for which the metric is not available
    cut: tuple[bool, ...] = ()  # whether values[i] is a lower bound: the run was not done
    cut_missing: int = 0  # the missing runs that were not done
    hosts: tuple[str, ...] = ()  # analysis.reading.facts.block of each value's run
    limited: Limited | None = None  # None: some run was done, or nothing is known of it

    @classmethod
    def over(
        cls,
        runs: Sequence[Run],
        values: Iterable[float | None],
        is_cut: Callable[[Run], bool] = lambda _: False,
        limited: Limited | None = None,
    ) -> "Sample":
        """The sample of these runs, which count, and values; is_cut: whether a run was not done."""
        pairs = zip(values, runs, strict=True)
        known = [(value, run) for value, run in pairs if value is not None]
        cut = tuple(is_cut(run) for _, run in known)
        return cls(
            tuple(value for value, _ in known),
            tuple(run.number for _, run in known),
            tuple(run.order for _, run in known),
            len(runs) - len(known),
            cut if any(cut) else (),
            sum(map(is_cut, runs)) - sum(cut),
            tuple(block(run) for _, run in known),
            limited,
        )

    @property
    def runs(self) -> int:
        """The number of runs that count, also those without a value."""
        return len(self.values) + self.missing

    @cached_property
    def most(self) -> tuple[float, ...]:
        """The upper bounds of the values: inf for a run that was not done."""
        if not self.cut:
            return self.values
        pairs = zip(self.values, self.cut, strict=True)
        return tuple(math.inf if cut else value for value, cut in pairs)

    @cached_property
    def known(self) -> tuple[float, ...]:
        """The values of the runs that did not fail, lower bounds included."""
        return tuple(value for value in self.values if math.isfinite(value))

    @cached_property
    def ended(self) -> tuple[float, ...]:
        """The values of the runs that ended by themselves."""
        if not self.cut:
            return self.known
        return tuple(value for value in self.most if math.isfinite(value))

    @property
    def failed(self) -> int:
        """The number of runs that failed."""
        return len(self.values) - len(self.known)

    @property
    def unfinished(self) -> int:
        """The number of runs that were not done at their limit."""
        return sum(self.cut) + self.cut_missing

    @cached_property
    def mean(self) -> float | None:
        """The mean of the runs that did not fail, or None; a lower bound if some runs were cut."""
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
        """The median of the runs that ended; None if none did."""
        ordered = sorted(self.ended)
        middle = len(ordered) // 2
        if not ordered:
            return None
        return ordered[middle] if len(ordered) % 2 else sum(ordered[middle - 1 : middle + 1]) / 2


def hosts_of(sample: Sample, base: Sample) -> Rows:
    """The host numbers of both samples' values; empty if all values are comparable."""
    names = sorted({*sample.hosts, *base.hosts})
    if len(names) < 2:
        return ()
    return tuple(tuple(float(names.index(host)) for host in of.hosts) for of in (sample, base))


def common_limit(metric: Metric, sample: Sample, base: Sample) -> float | None:
    """The limit (s) by which no run of either was done, if the metric can be compared up to it."""
    if metric.key == ELAPSED or not (sample.known and base.known):
        return None
    if sample.limited is None or base.limited is None:
        return None
    limits = sample.limited.limit_s, base.limited.limit_s
    return max(limits) if _same_limit(*limits) else None


@dataclass(frozen=True)
class Comparison:
    """A metric of a variant against the baseline's, or its spread between runs.

    Levels and p are probabilities, 0 to 1; ratios are variant to baseline.
    """

    metric: Metric
    variant: str
    base: Sample
    sample: Sample
    ratio: float | None = None  # median over all pairs of runs (spread: of the sd's)
    bound: str = ""  # ">=" or "<=" if `ratio` is only a bound, because runs were not done
    low: float | None = None  # lowest ratio that the test does not reject; None: no bound
    high: float | None = None  # highest such ratio; None: no bound
    tested: float | None = None  # level that Holm's correction left for this comparison
    p: float | None = None
    p_adjusted: float | None = None  # Holm's, in its family
    delta: float | None = None  # Cliff's: +1 if every run is worse than all the baseline's
    verdict: Word = "undecided"
    why: str = ""  # a sentence
    more_runs: int | None = None  # undecided: more runs of both that would decide, at most MANY
    least_runs: int | None = None  # undecided, too few for more_runs: fewest runs of both
    p_equivalent: float | None = None  # of a ratio outside the margin, corrected like p
    smallest: float | None = None  # smallest p that so many runs could give
    needed: float | None = None  # p that this comparison needs in its family
    level: float = 0.05
    margin: float = 0.1
    lost: float = 0.0  # programs killed in a run, mean; only in campaigns with remedies
    base_lost: float = 0.0  # the baseline's
    limit_s: float | None = None  # compared up to this limit, by which no run of either was done

    @property
    def differs(self) -> bool:
        """Whether a difference is established."""
        return self.p_adjusted is not None and self.p_adjusted <= self.level

    @property
    def within_hosts(self) -> bool:
        """Whether several hosts' clocks timed the runs, so that they are compared within hosts."""
        return bool(hosts_of(self.sample, self.base))

    @property
    def all_failed(self) -> bool:
        """Whether both have runs, and all of them failed."""
        both = (self.base, self.sample)
        return all(side.values and not side.known for side in both)

    @property
    def none_ended(self) -> bool:
        """Whether both have runs, and none ended: more such runs would decide nothing."""
        both = (self.base, self.sample)
        return all(side.values and not side.ended for side in both)

    @property
    def better_and_worse(self) -> tuple[Limited, Limited] | None:
        """Both up to the limit, the better one first; None if neither is established to be.

        None also if the worse one failed more often, which is worse whatever else it does.
        """
        pair = self.sample, self.base
        if self.limit_s is None or not (self.differs and self.delta):
            return None
        better, worse = pair if self.delta < 0 else pair[::-1]
        if worse.failed > better.failed or better.limited is None or worse.limited is None:
            return None
        return better.limited, worse.limited

    @property
    def doubt(self) -> str:
        """What the better one up to the limit perhaps is or does instead; '' if nothing."""
        if self.better_and_worse is None:
            return ""
        better, worse = self.better_and_worse
        if round(better.lines) < round(worse.lines):
            return "is slower"
        late = better.late >= LATER and better.late > worse.late - LATER
        return "freezes later" if late else ""

    @property
    def too_few(self) -> bool:
        """Whether these numbers of runs can reach no verdict, whatever they measure."""
        return self.smallest is None or self.needed is None or self.smallest > self.needed


@dataclass(frozen=True)
class Failures:
    """Numbers of runs that failed (hung, panicked, oom, lost), by Fisher's exact test."""

    variant: str
    failed: int
    runs: int
    base_failed: int
    base_runs: int
    p: float
    p_adjusted: float
    verdict: Word
