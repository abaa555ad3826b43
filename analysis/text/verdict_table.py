# SPDX-License-Identifier: GPL-2.0-or-later
"""Cells of the tables of verdicts and metrics, for texts, pictures and the page alike.

Every change is the raw ratio to the baseline: 1.25 is a quarter more; there are no percentages and
no signs. A word or the verdict beside the ratio says whether that is worse or better; a colour may
repeat it, but never replaces it. A ? after the word means that the difference is not established.
"""

import math
import statistics
from collections.abc import Callable, Iterator, Sequence

from analysis.figures.metrics import SLOW_KEYS, SLOW_WINDOW_KEYS, Metric
from analysis.reading.words import seconds
from analysis.verdicts.compared import Compared
from analysis.verdicts.sentences import times
from analysis.verdicts.slow_keys import WHERE
from analysis.verdicts.verdict import Comparison, Sample
from contract.workload import STALLED

Cell = Callable[[Compared, str], str]  # the cell of this variant
FROM_NOTHING, TO_NOTHING = "from 0", "to 0"  # in place of a ratio


def _sample(compared: Compared, variant: str) -> Sample:
    return compared.samples[compared.metric.key][variant]


def _verdict(compared: Compared, variant: str) -> str:
    comparison = compared.primary.get(variant)
    return comparison.verdict if comparison else "baseline" if compared.primary else ""


def _of_comparison(cell: Callable[[Comparison], str]) -> Cell:
    """A cell of the variant's comparison; empty for the baseline, which has no comparison."""
    return lambda compared, variant: (
        cell(compared.primary[variant]) if variant in compared.primary else ""
    )


def _failed(compared: Compared, variant: str) -> str:
    """The number of failed runs; empty if no run of any variant failed."""
    samples = compared.samples[compared.metric.key].values()
    return (
        str(_sample(compared, variant).failed) if any(sample.failed for sample in samples) else ""
    )


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


def _keys_metric(compared: Compared) -> str:
    """The metric of slow keys: in windows if all variants have those, else at terminals, or ''."""

    def typed(key: str) -> set[str]:
        if key not in compared.samples:
            return set()
        return {
            variant
            for variant in compared.variants
            if _slow_keys(compared, variant, key) is not None
        }

    windows, terminals = typed(SLOW_WINDOW_KEYS), typed(SLOW_KEYS)
    return SLOW_WINDOW_KEYS if windows and windows >= terminals else SLOW_KEYS if terminals else ""


def _slow_keys(compared: Compared, variant: str, key: str) -> float | None:
    """The variant's mean of this metric of slow keys; of runs that were cut, up to the limit."""
    felt = compared.felt.get(variant)
    if felt and felt.keys.get(key):
        return statistics.fmean(felt.keys[key])
    return compared.samples[key][variant].mean


def _keys(compared: Compared, variant: str) -> str:
    key = _keys_metric(compared)
    if not key:
        return "-"
    sample, share = compared.samples[key][variant], _slow_keys(compared, variant, key)
    if share is None:
        return "failed" if sample.values else "-"
    return (">=" if sample.failed else "") + f"{share:.0f} %"


def _killed(compared: Compared, variant: str) -> str:
    """Programs killed in a run, on average; empty if none was killed in any run."""
    comparisons = compared.primary.values()
    if not any(comparison.lost or comparison.base_lost for comparison in comparisons):
        return ""
    comparison = compared.primary.get(variant)
    return f"{next(iter(comparisons)).base_lost if comparison is None else comparison.lost:.2g}"


MEAN = ""  # a head that `verdict_rows` replaces by the primary metric's
# Each column that a table of verdicts can have: its head, and its cell of a variant.
COLUMNS: dict[str, tuple[str, Cell]] = {
    "verdict": ("verdict", _verdict),
    "frozen": ("frozen", _frozen),
    "worst": ("worst", _worst),
    "keys": ("keys", _keys),
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
FELT = ("verdict", "killed", "frozen", "worst", "keys")
IN_FULL = (*FELT, "mean", "sd", "ratio", "p", "runs", "failed")
IN_SUMMARY = (*FELT, "mean and sd", "ratio")
IN_REPORT = ("verdict", "mean and sd", "ratio", "p")


def verdict_rows(compared: Compared, columns: Sequence[str] = IN_FULL) -> Iterator[list[str]]:
    """The heads, then a row for each variant: its label, and its cells of these columns.

    A column that is empty for all variants is left out.
    """
    metric = compared.metric
    mean = "stalled s" if metric.key == STALLED else f"mean {metric.unit}".strip()
    variants = compared.variants
    cells = {name: [COLUMNS[name][1](compared, one) for one in variants] for name in columns}
    kept = [name for name, column in cells.items() if not {*column} <= {"", "-"}]
    yield ["variant", *(COLUMNS[name][0] or mean for name in kept)]
    for at, variant in enumerate(compared.variants):
        yield [compared.labels[variant], *(cells[name][at] for name in kept)]


def legend(compared: Compared) -> str:
    """What the columns of verdicts mean; empty if it has only those that every workload has."""
    where = WHERE.get(_keys_metric(compared))
    clauses = [f"keys: of those typed {where}, the share that took 0.1 s or more"] if where else []
    if compared.felt:
        words = next(iter(compared.felt.values())).added_up
        clauses = [
            "frozen: share of the time in gaps of 1 s or more",
            "worst: the longest gap in any run",
            *clauses,
            f"stalled: all such gaps{words and f' of {words}'}, mean of a run",
        ]
    text = "; ".join(clauses)
    return text and f"{text[0].upper()}{text[1:]}."


def mean_and_sd(metric: Metric, sample: Sample) -> str:
    """'203.4 ±9.6', in the metric's unit; a bound ('>=' or '<=') if runs failed or were cut."""
    spread = "" if sample.sd is None else f" ±{_number(metric, sample.sd)}"
    return _mean(metric, sample) + spread


def _sd(metric: Metric, sample: Sample) -> str:
    return "-" if sample.sd is None else _number(metric, sample.sd)


def _bound_mark(metric: Metric) -> str:
    """The mark of a mean without the failed runs, which count as worse than any value."""
    return ">=" if metric.sign > 0 else "<="


def ended(sample: Sample) -> int:
    """The number of runs that ended by themselves."""
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
        spread, ends = compared.spread[variant], compared.failures[variant]
        none = not (ends.failed or ends.base_failed)
        yield [
            compared.labels[variant],
            sd,
            "-" if spread.ratio is None else times(spread.ratio),
            p_cell(spread.p_adjusted),
            spread.verdict,
            f"{ends.failed} of {ends.runs}",
            "" if none else p_cell(ends.p_adjusted),
            "none" if none else ends.verdict,
        ]


def metric_cell(compared: Compared, metric: Metric, variant: str) -> tuple[str, str, str, str]:
    """'31.4', '±8.0', '0.50x', 'better': mean and sd, then (not for the baseline) the change."""
    sample = compared.samples[metric.key][variant]
    base = compared.samples[metric.key][compared.baseline]
    value = _mean(metric, sample)
    sd = "" if sample.sd is None else f"±{_number(metric, sample.sd)}"
    if variant == compared.baseline or sample.mean is None or base.mean is None:
        return value, sd, "", ""
    comparison = compared.of(metric)[variant]
    if any(comparison.sample.cut) and any(comparison.base.cut):
        return value, sd, "", ""  # both means are lower bounds, which do not bound the ratio
    change = _change(comparison)
    change = f"{comparison.bound}{change}" if change else ""
    same = change == "1.00x" and not comparison.differs
    return value, sd, change, "" if same else direction_word(comparison)


def _change(comparison: Comparison) -> str:
    """'3.31x', 'from 0', 'to 0'; empty if there is no ratio because runs failed."""
    if comparison.ratio and math.isfinite(comparison.ratio):
        return f"{times(comparison.ratio)}x"
    if (
        comparison.sample.failed
        or comparison.base.failed
        or comparison.sample.mean == comparison.base.mean
    ):
        return ""
    return FROM_NOTHING if not comparison.base.median else TO_NOTHING


def direction_word(comparison: Comparison) -> str:
    """'worse', 'better'; with a ? if that is not established; empty if there is no change.

    It goes by the ratio (the median over pairs of runs), or by the means if there is no ratio.
    """
    more = (comparison.sample.mean or 0.0) - (comparison.base.mean or 0.0)
    worse = more * comparison.metric.sign
    if comparison.ratio is not None and comparison.ratio != 1:
        worse = (comparison.ratio - 1) * comparison.metric.sign
    if (
        comparison.differs
        and comparison.delta
        and more * comparison.metric.sign * comparison.delta < 0
    ):
        return "mixed"  # most runs went one way, their mean the other
    word = "worse" if worse > 0 else "better" if worse < 0 else ""
    established = comparison.differs and not comparison.doubt
    return word if established or not word else f"{word}?"


def _mean(metric: Metric, sample: Sample) -> str:
    if sample.mean is None:
        return "failed" if sample.values else "-"
    mark = _bound_mark(metric) if sample.failed else ">=" if any(sample.cut) else ""
    return f"{mark}{_number(metric, sample.mean)}"


def _number(metric: Metric, value: float) -> str:
    if metric.digits == 0 and value != int(value):
        return f"{value:.1f}" if abs(value) < 1e5 else f"{value:.3g}"
    return f"{value:.{metric.digits}f}" if abs(value) < 1e5 else f"{value:.3g}"


def ratio_cell(comparison: Comparison) -> str:
    """'0.67 (0.63-0.71)': the median ratio over pairs of runs, and its interval."""
    if comparison.ratio is None:
        return "-"
    figure = comparison.bound + times(comparison.ratio)
    if comparison.low is None and comparison.high is None:
        return figure
    high = "inf" if comparison.high is None else _bound(comparison.high)
    return f"{figure} ({_bound(comparison.low or 0.0)}-{high})"


def _bound(value: float) -> str:
    return times(value) if value < 999.5 else f"{value:.0e}"


def p_cell(value: float | None) -> str:
    """'0.032', '<0.0001'; '-' if there is no p."""
    if value is None:
        return "-"
    return "<0.0001" if value < 0.0001 else f"{value:.2g}" if value < 0.0995 else f"{value:.2f}"
