# SPDX-License-Identifier: GPL-2.0-or-later
"""The cells of tables of verdicts and metrics, for texts, pictures and the page alike.

Every change is the raw ratio to the baseline, 1.25 being a quarter more; there is no percentage and
no sign. A word, or the verdict beside it, says whether that is worse or better; a colour may say it
too, never alone. A ? behind the word says that it is not established.
"""

import math
from collections.abc import Callable, Iterator, Sequence

from analysis.figures.metrics import Metric
from analysis.reading.words import seconds
from analysis.verdicts.compared import Compared
from analysis.verdicts.sentences import times
from analysis.verdicts.verdict import Comparison, Sample
from contract.workload import STALLED

Cell = Callable[[Compared, str], str]  # of this variant
FROM_NOTHING, TO_NOTHING = "from 0", "to 0"  # in place of a ratio


def _sample(compared: Compared, variant: str) -> Sample:
    return compared.samples[compared.metric.key][variant]


def _verdict(compared: Compared, variant: str) -> str:
    one = compared.primary.get(variant)
    return one.verdict if one else "baseline" if compared.primary else ""


def _of_comparison(cell: Callable[[Comparison], str]) -> Cell:
    """The baseline has none."""
    return lambda compared, variant: (
        cell(compared.primary[variant]) if variant in compared.primary else ""
    )


def _failed(compared: Compared, variant: str) -> str:
    """Empty if no run of any variant failed."""
    each = compared.samples[compared.metric.key].values()
    return str(_sample(compared, variant).failed) if any(one.failed for one in each) else ""


def _frozen(compared: Compared, variant: str) -> str:
    if not compared.felt:
        return ""
    felt = compared.felt.get(variant)
    return "-" if felt is None else (">=" if felt.failed else "") + f"{felt.frozen:.0f} %"


def _worst(compared: Compared, variant: str) -> str:
    if not compared.felt:
        return ""
    felt = compared.felt.get(variant)
    return "-" if felt is None else (">=" if felt.cut else "") + seconds(felt.worst)


def _killed(compared: Compared, variant: str) -> str:
    """Empty if no program was killed in any run."""
    each = compared.primary.values()
    if not any(one.lost or one.base_lost for one in each):
        return ""
    one = compared.primary.get(variant)
    return f"{next(iter(each)).base_lost if one is None else one.lost:.2g}"


MEAN = ""  # a head that the primary metric has a word for
# Each column that a table of verdicts can have: its head, and what stands in it.
COLUMNS: dict[str, tuple[str, Cell]] = {
    "verdict": ("verdict", _verdict),
    "frozen": ("frozen", _frozen),
    "worst": ("worst", _worst),
    "runs": ("runs", lambda compared, variant: runs_cell(_sample(compared, variant))),
    "failed": ("failed", _failed),
    "killed": ("killed", _killed),
    "mean": (MEAN, lambda compared, variant: _mean(compared.metric, _sample(compared, variant))),
    "mean and sd": (
        MEAN,
        lambda compared, variant: mean_and_sd(compared.metric, _sample(compared, variant)),
    ),
    "sd": ("sd", lambda compared, variant: _sd(compared.metric, _sample(compared, variant))),
    "ratio": ("ratio (interval)", _of_comparison(lambda one: ratio_cell(one))),
    "p": ("p (Holm)", _of_comparison(lambda one: p_cell(one.p_adjusted))),
}
IN_FULL = ("verdict", "killed", "frozen", "worst", "mean", "sd", "ratio", "p", "runs", "failed")
IN_SUMMARY = ("verdict", "killed", "frozen", "worst", "mean and sd", "ratio")
IN_REPORT = ("verdict", "mean and sd", "ratio", "p")


def verdict_rows(compared: Compared, columns: Sequence[str] = IN_FULL) -> Iterator[list[str]]:
    """The heads, then a row for each variant: its label, and its cells of these columns.

    A column of which no variant has anything is left out.
    """
    metric = compared.metric
    mean = "stalled s" if metric.key == STALLED else f"mean {metric.unit}".strip()
    variants = compared.variants
    cells = {name: [COLUMNS[name][1](compared, one) for one in variants] for name in columns}
    kept = [name for name, each in cells.items() if not {*each} <= {"", "-"}]
    yield ["variant", *(COLUMNS[name][0] or mean for name in kept)]
    for at, variant in enumerate(compared.variants):
        yield [compared.labels[variant], *(cells[name][at] for name in kept)]


def legend(compared: Compared) -> str:
    """What the columns of a desktop's verdicts are; empty of other loads."""
    if not compared.felt:
        return ""
    words = next(iter(compared.felt.values())).added_up
    return (
        "Frozen: share of the time in gaps of 1 s or more; worst: the longest gap in any run; "
        f"stalled: all such gaps{words and f' of {words}'}, mean of a run."
    )


def mean_and_sd(metric: Metric, sample: Sample) -> str:
    """'203.4 ±9.6'; '>=' (of more is better '<=') if runs failed or were not done."""
    spread = "" if sample.sd is None else f" ±{_number(metric, sample.sd)}"
    return _mean(metric, sample) + spread


def _sd(metric: Metric, sample: Sample) -> str:
    return "-" if sample.sd is None else _number(metric, sample.sd)


def _bound_mark(metric: Metric) -> str:
    """What a failed run, the worst there is, would make of a mean."""
    return ">=" if metric.sign > 0 else "<="


def ended(sample: Sample) -> int:
    """How many of the runs ended by themselves."""
    return sample.runs - sample.failed - sample.unfinished


def runs_cell(sample: Sample) -> str:
    """'5', or '3 of 5' if only three of the five runs have the figure."""
    return f"{len(sample.values)} of {sample.runs}" if sample.missing else str(sample.runs)


def spread_rows(compared: Compared) -> Iterator[list[str]]:
    metric = compared.metric
    head = f"sd {metric.unit}".strip()
    yield ["variant", head, "ratio", "p (Holm)", "spread", "failed", "p (Fisher)", "failures"]
    for variant in compared.variants:
        sample = compared.samples[metric.key][variant]
        sd = _sd(metric, sample)
        if variant == compared.baseline:
            failed = f"{sample.failed} of {sample.runs}"
            yield [compared.labels[variant], sd, "", "", "baseline", failed, "", "baseline"]
            continue
        one, ends = compared.spread[variant], compared.failures[variant]
        none = not (ends.failed or ends.base_failed)
        yield [
            compared.labels[variant],
            sd,
            "-" if one.ratio is None else times(one.ratio),
            p_cell(one.p_adjusted),
            one.verdict,
            f"{ends.failed} of {ends.runs}",
            "" if none else p_cell(ends.p_adjusted),
            "none" if none else ends.verdict,
        ]


def metric_cell(compared: Compared, metric: Metric, variant: str) -> tuple[str, str, str, str]:
    """'31.4', '±8.0', '0.50x', 'better'; of the baseline the first two."""
    sample = compared.samples[metric.key][variant]
    base = compared.samples[metric.key][compared.baseline]
    value = _mean(metric, sample)
    sd = "" if sample.sd is None else f"±{_number(metric, sample.sd)}"
    if variant == compared.baseline or sample.mean is None or base.mean is None:
        return value, sd, "", ""
    one = compared.of(metric)[variant]
    if any(sample.cut) and any(base.cut):
        return value, sd, "", ""  # each is at least so much: not even a bound of the ratio
    change = _change(one)
    change = f"{one.bound}{change}" if change else ""
    same = change == "1.00x" and not one.differs
    return value, sd, change, "" if same else direction_word(one)


def _change(one: Comparison) -> str:
    """'3.31x', 'from 0', 'to 0'; empty if that is no number because runs failed."""
    if one.ratio and math.isfinite(one.ratio):
        return f"{times(one.ratio)}x"
    if one.sample.failed or one.base.failed or one.sample.mean == one.base.mean:
        return ""
    return FROM_NOTHING if not one.base.median else TO_NOTHING


def direction_word(one: Comparison) -> str:
    """'worse', 'better'; with a ? while that is not established, empty if there is no change.

    It goes by the ratio, the median of a run to a run, and of those without one by the means.
    """
    more = (one.sample.mean or 0.0) - (one.base.mean or 0.0)
    worse = more * one.metric.sign
    if one.ratio is not None and one.ratio != 1:
        worse = (one.ratio - 1) * one.metric.sign
    if one.differs and one.delta and more * one.metric.sign * one.delta < 0:
        return "mixed"  # most runs went one way, their mean the other
    word = "worse" if worse > 0 else "better" if worse < 0 else ""
    return word if one.differs or not word else f"{word}?"


def _mean(metric: Metric, sample: Sample) -> str:
    if sample.mean is None:
        return "failed" if sample.values else "-"
    mark = _bound_mark(metric) if sample.failed else ">=" if any(sample.cut) else ""
    return f"{mark}{_number(metric, sample.mean)}"


def _number(metric: Metric, value: float) -> str:
    if metric.digits == 0 and value != int(value):
        return f"{value:.1f}" if abs(value) < 1e5 else f"{value:.3g}"
    return f"{value:.{metric.digits}f}" if abs(value) < 1e5 else f"{value:.3g}"


def ratio_cell(one: Comparison) -> str:
    """'0.67 (0.63-0.71)': the median ratio of two runs, and the ratios that are not rejected."""
    if one.ratio is None:
        return "-"
    figure = one.bound + times(one.ratio)
    if one.low is None and one.high is None:
        return figure
    return f"{figure} ({_bound(one.low or 0.0)}-{'inf' if one.high is None else _bound(one.high)})"


def _bound(value: float) -> str:
    return times(value) if value < 999.5 else f"{value:.0e}"


def p_cell(value: float | None) -> str:
    """'0.032', '<0.0001'; '-' if there is none."""
    if value is None:
        return "-"
    return "<0.0001" if value < 0.0001 else f"{value:.2g}" if value < 0.0995 else f"{value:.2f}"
