# SPDX-License-Identifier: GPL-2.0-or-later
"""compare.txt: everything in a comparison, as plain text of at most `width` columns."""

from collections.abc import Iterator, Sequence
from textwrap import wrap

from analysis.figures.metrics import Metric
from analysis.reading.words import first_names, plural, safe_line, short_label
from analysis.text import causes as causes_text
from analysis.text import layout, lost_programs, vmstat, workload_tables
from analysis.text.layout import blocks, grid
from analysis.text.machine import differing
from analysis.text.verdict_table import IN_FULL, legend, metric_cell, spread_rows, verdict_rows
from analysis.verdicts.compared import Compared
from analysis.verdicts.sentences import least_word, more_word
from analysis.verdicts.statistics import least_more_runs
from contract.workload import STALLED

MOST_HIGHER = 12  # metrics that are named of which more is better


def text(compared: Compared, width: int = 100, colour: bool = False) -> str:
    """Sentences; tables of verdicts, spread, failures, causes, counters and metrics; notes.

    Several workloads follow one after the other.
    """
    if not compared.others:
        return _of_one(compared, width, colour)
    parts = [
        f"{layout.titled(part.workload.name)}{_of_one(part, width, colour)}"
        for part in compared.each
    ]
    return "\n".join([*wrap(together(compared), width), "", *parts])


def together(compared: Compared) -> str:
    """How several workloads are judged, in a sentence or two."""
    names = [part.workload.name for part in compared.each]
    count = sum(len(part.primary) for part in compared.each)
    return (
        f"{len(names)} workloads ({', '.join(names)}), compared each by itself and by its own "
        f"metric; Holm's corrections count all of them: {plural(count, 'comparison')} of a primary "
        "metric."
    )


def verdict_lines(
    compared: Compared, columns: Sequence[str], width: int, *, colour: bool = False
) -> list[str]:
    """The table of verdicts; without the standard deviations if it is too wide with them."""
    without = [name.removesuffix(" and sd") for name in columns if name != "sd"]
    names = {"variant", *compared.labels.values()}  # may be long, on lines of their own
    for chosen in (columns, without):
        rows = list(verdict_rows(compared, chosen))
        lines = grid(rows, width, whole_names=True, least=0)
        if max(len(line) for line in lines if line not in names) <= width:
            break
    return grid(rows, width, colour=colour, whole_names=True, least=0)


def _of_one(compared: Compared, width: int, colour: bool) -> str:
    lines: list[str] = []
    for variant in compared.variants:
        lines += wrap(compared.sentences[variant], width, subsequent_indent="  ")
    for sentence in differing(compared.campaign, compared.labels):
        lines += wrap(sentence, width, subsequent_indent="  ")
    others = compared.variants[1:]
    if others:
        lines += ["", *wrap(f"{heading(compared.metric)}, against {_base(compared)}:", width), ""]
        lines += verdict_lines(compared, IN_FULL, width, colour=colour)
        lines += wrap(legend(compared), width)
        lines += ["", "Spread between runs (of the runs that ended), and runs that failed:", ""]
        lines += grid(spread_rows(compared), width, colour=colour)
    if lost := list(lost_programs.section(compared.campaign, compared.labels)):
        lines += ["", *lost]
    lines += workload_tables.variant_lines(compared, compared.variants, width)
    if compared.causes.samples:
        lines += ["", *causes_text.section(compared.causes, compared.workload, width)]
    lines += vmstat.section(compared, width)
    ratio = f", ratio to {_base(compared)}" if others else ""
    lines += ["", *wrap(f"All metrics (mean ±sd of the runs that ended{ratio}):", width)]
    lines += _metrics(compared, width, colour)
    lines.append("")
    for note in [*forced_notes(compared), *notes(compared)]:
        lines += wrap(f"- {note}", width, subsequent_indent="  ")
    return "\n".join(line.rstrip() for line in lines) + "\n"


def heading(metric: Metric) -> str:
    """What a table of verdicts is about: 'Stalled seconds per run', 'Rate inside (MB/s, …)'."""
    if metric.key == STALLED:
        return f"{metric.title[:1].upper()}{metric.title[1:]}"
    unit = f"{metric.unit}, " if metric.unit else ""
    return f"{metric.title[:1].upper()}{metric.title[1:]} ({unit}{metric.better} is better)"


def direction(compared: Compared) -> str:
    """'lower is better for all metrics', or for all metrics but those named."""
    higher = [metric.title for metric in compared.metrics if metric.better == "higher"]
    if not higher:
        return "lower is better for all metrics"
    return (
        f"lower is better for all metrics but {first_names(higher, MOST_HIGHER)}, of which more is"
    )


def _base(compared: Compared) -> str:
    return safe_line(compared.labels[compared.baseline], 40)


def _metrics(compared: Compared, width: int, colour: bool) -> Iterator[str]:
    """The baseline's column is the first of each block."""
    shown = [m for m in compared.metrics if any(s.known for s in compared.samples[m.key].values())]
    names = ["", *(metric.name for metric in shown)]
    columns = {
        variant: [
            short_label(compared.labels[variant], 26),
            *_aligned([metric_cell(compared, metric, variant) for metric in shown]),
        ]
        for variant in compared.variants
    }
    if compared.primary:
        names.append("verdict")
        for variant, column in columns.items():
            comparison, failed = compared.primary.get(variant), _failed(compared, variant)
            column.append((comparison.verdict if comparison else "baseline") + failed)
    yield from blocks(names, columns.values(), width, colour)


def _failed(compared: Compared, variant: str) -> str:
    sample = compared.samples[compared.metric.key][variant]
    counts = {"failed": sample.failed, "unfinished": sample.unfinished}
    return "".join(f", {count} {word}" for word, count in counts.items() if count)


def _aligned(cells: list[tuple[str, str, str, str]]) -> list[str]:
    """The cells as texts whose parts are aligned with each other."""
    sizes = [max(map(len, part), default=0) for part in zip(*cells, strict=True)]
    return [
        f"{value:>{sizes[0]}} {sd:<{sizes[1]}} {change:>{sizes[2]}} {word}".rstrip()
        for value, sd, change, word in cells
    ]


def forced_notes(compared: Compared) -> list[str]:
    """A sentence for each fact that --force overrode: the runs are not comparable."""
    return [f"FORCED (--force): these runs are not comparable: {fact}." for fact in compared.forced]


def notes(compared: Compared) -> Iterator[str]:
    """Notes of a sentence or two: what a reader must know about the runs and the verdicts."""
    plan = compared.campaign.plan
    yield from compared.notes
    if not compared.primary:
        return
    yield (
        f"A verdict needs p (Holm) <= {compared.level:.2g}. The ratio is the median of a run over "
        "a run; its interval holds the ratios that the same test at the same level does not "
        f"reject. equivalent: all of them are within {1 / (1 + plan.margin):.3f} to "
        f"{1 + plan.margin:.3f}."
    )
    yield (
        f"Only one metric was fixed in advance: {compared.metric.title}. The spread and the "
        "failures are a family each, all other metrics one together: exploratory."
    )
    yield from _out_of_reach(compared)
    yield (
        "Every change is a ratio to the baseline: the median of a run over a run, raw; "
        f"{direction(compared)}. A ? says that the difference is not established, which is not to "
        "say that there is none."
    )
    more_runs = [test.more_runs for test in compared.primary.values() if test.more_runs is not None]
    if more_runs:
        count = plural(len(more_runs), "comparison")
        yield f"{count} undecided: {more_word(max(more_runs))} would probably decide all of them."
    few = [test.least_runs for test in compared.primary.values() if test.least_runs is not None]
    if few:
        count = plural(len(few), "comparison")
        yield (
            f"{count} undecided with too few runs to tell how many would decide: "
            f"{least_word(max(few))}."
        )


def _out_of_reach(compared: Compared) -> Iterator[str]:
    """A note if no exploratory difference can be established, whatever was measured."""
    tests = [
        test
        for comparisons in compared.secondary.values()
        for test in comparisons.values()
        if test.p is not None
    ]
    if not tests or not all(test.too_few for test in tests):
        return
    sizes = [len(side.values) for test in tests for side in (test.sample, test.base)]
    least, most = min(sizes), max(sizes)
    runs = plural(most, "run") if least == most else f"{least} to {most} runs"
    more = least_more_runs(1, 1, compared.level / len(tests))
    enough = f"; {1 + more} runs of each could" if more is not None else ""
    yield (
        f"Exploratory: {plural(len(tests), 'test')}, {runs} each: none of them can be established, "
        f"whatever was measured{enough}."
    )
