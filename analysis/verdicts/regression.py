# SPDX-License-Identifier: GPL-2.0-or-later
"""The two kernels of a campaign between which a regression can be reported, or why there are none.

`regressed` means that a variant is worse than the baseline. That is a regression of the kernel only
if nothing but the kernel differs, and the newer kernel is worse. A variant that `improved`
means a regression if it has the older kernel.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from analysis.figures.metrics import Metric
from analysis.reading.facts import own_settings
from analysis.reading.kernel_version import KernelVersion, introduced_in, kernel_version
from analysis.reading.load import Run
from analysis.reading.words import first_names, safe_line
from analysis.verdicts.compared import Compared
from analysis.verdicts.sentences import AT
from analysis.verdicts.verdict import Comparison

LABEL = 40  # characters of a variant's label


@dataclass(frozen=True)
class Regression:
    """The variants with the older and the newer, worse kernel; `compared`: their workload's."""

    compared: Compared
    old: str
    new: str
    comparison: Comparison  # of the variant that is not the baseline

    @property
    def ratio(self) -> float | None:
        """New to old in the primary metric; None if there is no ratio, as if all runs failed."""
        return self.of(self.compared.metric)

    def of(self, metric: Metric) -> float | None:
        """New to old in this metric, the median over all pairs of runs; None without a ratio."""
        ratio = self.compared.of(metric)[self.comparison.variant].ratio
        if ratio is None or not math.isfinite(ratio) or ratio <= 0:
            return None
        return ratio if self.comparison.variant == self.new else 1 / ratio

    def bound(self, metric: Metric) -> str:
        """'at least ' or 'at most ' if runs that were not done only bound the ratio; else ''."""
        known = self.compared.of(metric)[self.comparison.variant].bound
        if self.comparison.variant != self.new:
            known = {"": "", ">=": "<=", "<=": ">="}[known]
        return AT[known]

    @property
    def effect(self) -> float:
        """The rank of a regression: |log ratio|; inf, which is first, without a ratio."""
        return math.inf if self.ratio is None else abs(math.log(self.ratio))


def regression(compared: Compared) -> Regression | str:
    """The largest regression of a kernel, or a clause that says why there is none."""
    if not any(one.primary for one in compared.each):
        return "there is one variant, and nothing to compare it with"
    if any(one.forced for one in compared.each):
        return "these runs differ in more than the kernel (--force)"
    candidates = [found for one in compared.each for found in _candidates(one)]
    found = [one for one in candidates if isinstance(one, Regression)]
    if found:
        return max(found, key=lambda one: one.effect)
    reasons = [one for one in candidates if isinstance(one, str)]
    return reasons[0] if reasons else "no kernel was shown to be worse than another one"


def _candidates(compared: Compared) -> Iterator[Regression | str]:
    """For each variant that regressed or improved, the regression, or why it is none."""
    runs = compared.campaign.variants()
    for variant, comparison in compared.primary.items():
        if comparison.verdict not in ("regressed", "improved"):
            continue
        pair = (compared.baseline, variant)
        better, worse = pair if comparison.verdict == "regressed" else pair[::-1]
        labels = [safe_line(compared.labels[name], LABEL) for name in (worse, better)]
        claim = "{} is worse than {}".format(*labels)
        if apart := own_settings(runs[better][0], runs[worse][0]):
            yield f"{claim}, but they differ in {first_names(apart, 3)}, not in the kernel alone"
            continue
        if _same_kernel(runs[better][0], runs[worse][0]):
            yield f"{claim}, but both are the same kernel"
            continue
        versions = [kernel_version(runs[name][0]) for name in (better, worse)]
        if not introduced_in(*versions):
            yield f"{claim}, but neither versions nor commits tell which change made it so"
        elif _older(*versions, otherwise=worse == compared.baseline):
            yield f"{claim}, but it is the older kernel"
        else:
            yield Regression(compared, better, worse, comparison)


def _same_kernel(one: Run, other: Run) -> bool:
    digests = [run.fact("kernel", "image_digest") for run in (one, other)]
    return digests[0] is not None and digests[0] == digests[1]


def _older(one: KernelVersion | None, other: KernelVersion | None, *, otherwise: bool) -> bool:
    """Whether `other` is the older kernel; `otherwise` if only their commits differ."""
    if one is None or other is None or one.order == other.order:
        return otherwise
    return other.order < one.order
