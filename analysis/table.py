# SPDX-License-Identifier: GPL-2.0-or-later
"""The verdicts as plain text of at most `width` columns.

A percentage is always the raw change against the baseline. Whether that is better or worse is said
by a word (and by colour, never by colour alone), with a ? while it is not established.
"""

from collections.abc import Iterator
from textwrap import wrap
from typing import TYPE_CHECKING

from analysis import cause_table
from analysis.grid import blocks, grid
from analysis.metrics import METRICS, PRIMARY, Metric
from analysis.sentences import more_word, times
from analysis.statistics import least_more_runs
from analysis.table_files import csv, json
from analysis.verdict import Comparison, Sample
from analysis.words import plain, plural

if TYPE_CHECKING:
    from analysis.compare import Compared

__all__ = ["csv", "json", "text"]

NAMES = {  # rows of the table of all metrics, where they differ from the title and the unit
    "stalled": "stalled s per run",
    "share-0.1": "% of time in gaps >= 0.1 s",
    "share-1": "% of time in gaps >= 1 s",
    "share-10": "% of time in gaps >= 10 s",
    "wait": "wait at a random moment s",
    "window-p50": "10 s windows' p95, median s",
    "window-share": "% of 10 s windows p95 >= 1 s",
    "elapsed": "all gitk's done after s",
    "skipped": "audio skips s",
}


def text(compared: "Compared", width: int = 100, colour: bool = False) -> str:
    """Sentences, table of verdicts, table of spread and failures, all metrics, notes."""
    lines: list[str] = []
    for variant in compared.variants:
        lines += wrap(compared.sentences[variant], width, subsequent_indent="  ")
    others = compared.variants[1:]
    if others:
        lines += ["", f"Stalled seconds per run, against {_base(compared)}:", ""]
        lines += grid(verdict_rows(compared), width, colour)
        lines += ["", "Spread between runs (of the runs that ended), and runs that failed:", ""]
        lines += grid(spread_rows(compared), width, colour)
    if compared.causes.samples:
        lines += ["", "Stalled seconds by cause (mean of the runs that ended and have evidence):"]
        lines += cause_table.lines(compared.causes, width)
    lines += ["", "All metrics (mean ±sd of the runs that ended, change of the mean):"]
    lines += _metrics(compared, width, colour)
    lines.append("")
    for note in notes(compared):
        lines += wrap(f"- {note}", width, subsequent_indent="  ")
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _base(compared: "Compared") -> str:
    return plain(compared.labels[compared.baseline], 40)


def verdict_rows(compared: "Compared") -> Iterator[list[str]]:
    yield [
        "variant",
        "runs",
        "failed",
        "stalled s",
        "sd",
        "ratio (95 %)",
        "p (Holm)",
        "delta",
        "verdict",
    ]
    for variant in compared.variants:
        sample = compared.samples[PRIMARY.key][variant]
        row = [
            compared.labels[variant],
            runs_cell(sample),
            str(sample.failed),
            _mean(PRIMARY, sample),
            "-" if sample.sd is None else _number(PRIMARY, sample.sd),
        ]
        one = compared.primary.get(variant)
        if one is None:
            yield [*row, "", "", "", "baseline"]
            continue
        yield [
            *row,
            _ratio(one),
            p_word(one.p_adjusted),
            "-" if one.delta is None else f"{one.delta:+.2f}",
            one.verdict,
        ]


def runs_cell(sample: Sample) -> str:
    """'5', or '3 of 5' if only three of the five runs have the figure."""
    return f"{len(sample.values)} of {sample.runs}" if sample.missing else str(sample.runs)


def spread_rows(compared: "Compared") -> Iterator[list[str]]:
    yield ["variant", "sd s", "ratio", "p (Holm)", "spread", "failed", "p (Fisher)", "failures"]
    for variant in compared.variants:
        sample = compared.samples[PRIMARY.key][variant]
        sd = "-" if sample.sd is None else _number(PRIMARY, sample.sd)
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
            p_word(one.p_adjusted),
            one.verdict,
            f"{ends.failed} of {ends.runs}",
            "" if none else p_word(ends.p_adjusted),
            "none" if none else ends.verdict,
        ]


def _metrics(compared: "Compared", width: int, colour: bool) -> Iterator[str]:
    """The baseline's column is the first of each block."""
    shown = [m for m in METRICS if any(s.ended for s in compared.samples[m.key].values())]
    names = ["", *(NAMES.get(m.key, f"{m.title} {m.unit}".strip()) for m in shown)]
    columns = {
        variant: [
            plain(compared.labels[variant], 26),
            *_aligned([cell(compared, metric, variant) for metric in shown]),
        ]
        for variant in compared.variants
    }
    if compared.primary:
        names.append("verdict (stalled s per run)")
        for variant, column in columns.items():
            one, failed = compared.primary.get(variant), _failed(compared, variant)
            column.append((one.verdict if one else "baseline") + failed)
    yield from blocks(names, columns.values(), width, colour)


def cell(compared: "Compared", metric: Metric, variant: str) -> tuple[str, str, str, str]:
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
    word = _direction(one[variant], sample.mean - base.mean)
    change = f"({_change(sample.mean / base.mean - 1)})" if base.mean else ""
    return value, sd, change, word


def _failed(compared: "Compared", variant: str) -> str:
    failed = compared.samples[PRIMARY.key][variant].failed
    return f", {failed} failed" if failed else ""


def _aligned(cells: list[tuple[str, str, str, str]]) -> list[str]:
    """Each part of the cells under its like."""
    sizes = [max(map(len, part), default=0) for part in zip(*cells, strict=True)]
    return [
        f"{value:>{sizes[0]}} {sd:<{sizes[1]}} {change:>{sizes[2]}} {word}".rstrip()
        for value, sd, change, word in cells
    ]


def _direction(one: Comparison, change: float) -> str:
    if one.differs and one.delta and change * one.delta < 0:
        return "mixed"  # most runs went one way, their mean the other
    word = "worse" if change > 0 else "better" if change < 0 else ""
    return word if one.differs or not word else f"{word}?"


def _change(share: float) -> str:
    percent = 100 * share
    return f"{percent:+.1f}%" if abs(percent) < 999.95 else f"{percent:+.0f}%"


def _mean(metric: Metric, sample: Sample) -> str:
    if sample.mean is None:
        return "failed" if sample.values else "-"
    return f"{'>=' if sample.failed else ''}{_number(metric, sample.mean)}"


def _number(metric: Metric, value: float) -> str:
    if metric.digits == 0 and value != int(value):
        return f"{value:.1f}" if abs(value) < 1e5 else f"{value:.3g}"
    return f"{value:.{metric.digits}f}" if abs(value) < 1e5 else f"{value:.3g}"


def _ratio(one: Comparison) -> str:
    if one.ratio is None:
        return "-"
    bound = ">=" if one.sample.failed and not one.base.failed else ""
    figure = f"{bound}{times(one.ratio)}"
    if one.low is None and one.high is None:
        return figure
    return f"{figure} ({_bound(one.low)}-{_bound(one.high)})"


def _bound(value: float | None) -> str:
    if value is None:
        return "inf"
    return times(value) if value < 999.5 else f"{value:.0e}"


def p_word(value: float | None) -> str:
    """'0.032', '<0.0001'; '-' if there is none."""
    if value is None:
        return "-"
    return "<0.0001" if value < 0.0001 else f"{value:.2g}" if value < 0.0995 else f"{value:.2f}"


def notes(compared: "Compared") -> Iterator[str]:
    plan = compared.campaign.plan
    for fact in compared.forced:
        yield f"FORCED (--force): these runs are not comparable: {fact}."
    yield from compared.notes
    if not compared.primary:
        return
    yield (
        f"A verdict needs p (Holm) <= {compared.level:.2g}; equivalent: the 95 % interval of the "
        f"ratio within {1 / (1 + plan.margin):.3f} to {1 + plan.margin:.3f}, and both one-sided "
        "tests against these bounds."
    )
    yield (
        "Only stalled seconds per run was fixed in advance. The spread and the failures are a "
        "family each, all other metrics one together: exploratory."
    )
    yield from _out_of_reach(compared)
    yield (
        "Every change is raw, against the baseline; lower is better for all metrics. A ? says that "
        "the difference is not established, which is not to say that there is none."
    )
    told = [one.more_runs for one in compared.primary.values() if one.more_runs is not None]
    if told:
        count = plural(len(told), "comparison")
        yield f"{count} undecided: {more_word(max(told))} would probably decide all of them."
    few = [one.least_runs for one in compared.primary.values() if one.least_runs is not None]
    if few:
        count = plural(len(few), "comparison")
        yield (
            f"{count} undecided with too few runs to tell how many would decide: it takes "
            f"{max(few)} of each at least."
        )


def _out_of_reach(compared: "Compared") -> Iterator[str]:
    """Says so if no exploratory difference can be established, whatever was measured."""
    tests = [one for of in compared.secondary.values() for one in of.values() if one.p is not None]
    if not tests or not all(one.too_few for one in tests):
        return
    sizes = [len(side.values) for one in tests for side in (one.sample, one.base)]
    least, most = min(sizes), max(sizes)
    runs = plural(most, "run") if least == most else f"{least} to {most} runs"
    more = least_more_runs(1, 1, compared.level / len(tests))
    enough = f"; {1 + more} runs of each could" if more is not None else ""
    yield (
        f"Exploratory: {plural(len(tests), 'test')}, {runs} each: none of them can be established, "
        f"whatever was measured{enough}."
    )
