# SPDX-License-Identifier: GPL-2.0-or-later
"""The cells of tables of verdicts and metrics, for texts, pictures and the page alike.

A percentage is always the raw change against the baseline. Whether that is better or worse is said
by a word (and by colour, never by colour alone), with a ? while it is not established.
"""

from collections.abc import Callable, Iterator, Sequence

from analysis.figures.metrics import Metric
from analysis.verdicts.compared import Compared
from analysis.verdicts.sentences import times
from analysis.verdicts.verdict import Comparison, Sample
from contract.workload import STALLED

# None: the baseline has no comparison.
Cell = Callable[[Metric, Sample, Comparison | None], str]


def _of_comparison(cell: Callable[[Comparison], str], baseline: str = "") -> Cell:
    return lambda metric, sample, one: baseline if one is None else cell(one)


MEAN = ""  # a head that the primary metric has a word for
# Each column that a table of verdicts can have: its head, and what stands in it.
COLUMNS: dict[str, tuple[str, Cell]] = {
    "runs": ("runs", lambda _, sample, __: runs_cell(sample)),
    "failed": ("failed", lambda _, sample, __: str(sample.failed)),
    "ended": ("ended", lambda _, sample, __: f"{ended(sample)} of {sample.runs}"),
    "mean": (MEAN, lambda metric, sample, _: _mean(metric, sample)),
    "mean and sd": (MEAN, lambda metric, sample, _: mean_and_sd(metric, sample)),
    "sd": ("sd", lambda metric, sample, _: _sd(metric, sample)),
    "ratio": ("ratio (interval)", _of_comparison(lambda one: ratio_cell(one))),
    "p": ("p (Holm)", _of_comparison(lambda one: p_cell(one.p_adjusted))),
    "delta": (
        "delta",
        _of_comparison(lambda one: "-" if one.delta is None else f"{one.delta:+.2f}"),
    ),
    "verdict": ("verdict", _of_comparison(lambda one: one.verdict, "baseline")),
}
IN_FULL = ("runs", "failed", "mean", "sd", "ratio", "p", "delta", "verdict")
IN_SUMMARY = ("ended", "mean and sd", "ratio", "verdict")
IN_REPORT = ("mean and sd", "ratio", "p", "verdict")


def verdict_rows(compared: Compared, columns: Sequence[str] = IN_FULL) -> Iterator[list[str]]:
    """The heads, then a row for each variant: its label, and its cells of these columns."""
    metric = compared.metric
    mean = "stalled s" if metric.key == STALLED else f"mean {metric.unit}".strip()
    yield ["variant", *(COLUMNS[name][0] or mean for name in columns)]
    for variant in compared.variants:
        sample = compared.samples[metric.key][variant]
        one = compared.primary.get(variant)
        cells = (COLUMNS[name][1](metric, sample, one) for name in columns)
        yield [compared.labels[variant], *cells]


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
    """'31.4', '±8.0', '(-50.2%)', 'better'; no percentage without a baseline to take it of."""
    sample = compared.samples[metric.key][variant]
    base = compared.samples[metric.key][compared.baseline]
    value = _mean(metric, sample)
    sd = "" if sample.sd is None else f"±{_number(metric, sample.sd)}"
    if variant == compared.baseline:
        return value, sd, "( 0.00%)" if base.mean else "", ""
    if sample.mean is None or base.mean is None:
        return value, sd, "", ""
    one = compared.primary if metric.primary else compared.secondary[metric.key]
    word = _direction(one[variant], (sample.mean - base.mean) * metric.sign)
    if any(sample.cut) and any(base.cut):
        return value, sd, "", ""
    bound = ">=" if any(sample.cut) else "<=" if any(base.cut) else ""
    change = f"({bound}{_change(sample.mean / base.mean - 1)})" if base.mean else ""
    return value, sd, change, word


def _direction(one: Comparison, worse: float) -> str:
    """worse: by how much the mean is; below 0 it is better."""
    if one.differs and one.delta and worse * one.delta < 0:
        return "mixed"  # most runs went one way, their mean the other
    word = "worse" if worse > 0 else "better" if worse < 0 else ""
    return word if one.differs or not word else f"{word}?"


def _change(share: float) -> str:
    percent = 100 * share
    return f"{percent:+.1f}%" if abs(percent) < 999.95 else f"{percent:+.0f}%"


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
