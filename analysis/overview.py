# SPDX-License-Identifier: GPL-2.0-or-later
"""A campaign of several runs on one page of at most 75 columns: verdicts, and a line for each run.

What does not fit is in compare.txt (every metric) and details.txt (every run).
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import get_args

from analysis import audit, cause_table
from analysis.cause_table import Causes
from analysis.choice import SHOWN, display_labels, in_order
from analysis.compare import Compared, Word
from analysis.load import Campaign, Run, Stream
from analysis.metrics import COMPLETED, PRIMARY, lost
from analysis.records import number
from analysis.sentences import times
from analysis.stalls import stalled_seconds, worst
from analysis.verdict import Comparison, Sample
from analysis.words import WIDTH, paragraph, plain, plural, seconds
from setup.errors import UserError

IN_WORDS = 6  # variants that have a sentence each
LISTED_RUNS = 36  # beyond, the runs that ended as they should have no line of their own


def overview(
    campaign: Campaign, judged: Compared | UserError | None, causes: Causes
) -> Iterator[str]:
    """The page; `judged`: the verdicts, or the reason why there are none."""
    if isinstance(judged, Compared):
        yield from _answers(judged)
    elif judged is not None:
        yield from paragraph(f"Not compared: {plain(judged, 1000)}.")
        yield ""
    yield from _causes(campaign, judged, causes)
    yield from _runs(campaign, judged)
    for note in _notes(campaign, judged, causes):
        yield from paragraph(f"- {plain(note, 2000)}", "  ")
    more = "- Each run: details.txt."
    if isinstance(judged, Compared):
        more += " Every metric: compare.txt. To explore: index.html."
    yield more


def _answers(compared: Compared) -> Iterator[str]:
    """A sentence for each variant, or with many how many there are of each verdict; a table."""
    for fact in compared.forced:
        text = f"FORCED (--force): these runs are not comparable: {plain(fact, 1000)}."
        yield from [*paragraph(text), ""]
    if len(compared.variants) <= IN_WORDS:
        for variant in compared.variants:
            yield from paragraph(plain(compared.sentences[variant], 2000), "  ")
    else:
        yield from paragraph(plain(compared.sentences[compared.baseline], 2000), "  ")
        yield from paragraph(f"Of the other variants: {tally(compared)}.", "  ")
    yield ""
    if compared.primary:
        yield from _grid(_verdicts(compared))
        yield ""


def _causes(
    campaign: Campaign, judged: Compared | UserError | None, causes: Causes
) -> Iterator[str]:
    """Stalled seconds by cause, unless the variants are too many for this page."""
    if isinstance(judged, Compared):
        table = judged.causes
    else:
        labels = display_labels(campaign)
        table = cause_table.cause_table(campaign, in_order(campaign), labels, causes)
    if not table.samples or len(table.variants) > IN_WORDS:
        return
    yield "Stalled seconds by cause (mean of the runs that ended and have evidence):"
    yield from [*cause_table.lines(table, WIDTH), ""]


def tally(compared: Compared) -> str:
    """'2 regressed, 1 improved, 0 equivalent, 116 undecided'."""
    found = Counter(one.verdict for one in compared.primary.values())
    return ", ".join(f"{found[word]:,} {word}" for word in get_args(Word))


def _verdicts(compared: Compared) -> Iterator[list[str]]:
    yield ["variant", "ended", "stalled s", "ratio (95 %)", "verdict"]
    for variant in compared.variants:
        sample = compared.samples[PRIMARY.key][variant]
        one = compared.primary.get(variant)
        yield [
            compared.labels[variant],
            f"{sample.runs - sample.failed} of {sample.runs}",
            mean_word(sample),
            ratio_word(one) if one else "",
            one.verdict if one else "baseline",
        ]


def mean_word(sample: Sample) -> str:
    """'203.4 ±9.6'; '>=' if runs failed, whose seconds are in no mean."""
    if sample.mean is None:
        return "failed" if sample.values else "-"
    spread = "" if sample.sd is None else f" ±{sample.sd:.1f}"
    return f"{'>=' if sample.failed else ''}{sample.mean:.1f}{spread}"


def ratio_word(one: Comparison) -> str:
    """'0.67 (0.63-0.71)': the ratio of the means and its 95 % interval over the runs."""
    if one.ratio is None:
        return "-"
    figure = f"{'>=' if one.sample.failed and not one.base.failed else ''}{times(one.ratio)}"
    if one.low is None and one.high is None:
        return figure
    bounds = (times(one.low or 0.0), "inf" if one.high is None else times(one.high))
    return f"{figure} ({'-'.join(bounds)})"


def _grid(rows: Iterable[list[str]]) -> Iterator[str]:
    """Rows under each other; the first column gives way if all do not fit."""
    first, *columns = zip(*rows, strict=True)
    sizes = [max(map(len, column)) for column in columns]
    room = WIDTH - sum(sizes) - 2 * len(sizes)
    names = [plain(name, max(8, room)) for name in first]
    padded = [max(map(len, names)), *sizes]
    for row in zip(names, *columns, strict=True):
        cells = (f"{cell:<{size}}" for cell, size in zip(row, padded, strict=True))
        yield "  ".join(cells).rstrip()


def _runs(campaign: Campaign, judged: Compared | UserError | None) -> Iterator[str]:
    """One line a run; of many runs only those that did not end as they should."""
    order = judged.variants if isinstance(judged, Compared) else in_order(campaign)
    labels = display_labels(campaign)
    by_variant = campaign.variants()
    runs = [run for variant in order for run in by_variant[variant]]
    listed = runs
    if len(runs) > LISTED_RUNS:
        listed = [run for run in runs if run.state != COMPLETED or audit.disturbed(run)]
        done = sum(run.state == COMPLETED for run in runs)
        text = f"{plural(len(runs), 'run')}; {done:,} of them completed"
        yield from paragraph(text + (", the others:" if listed else "."))
    if not listed:
        yield ""
        return
    marked = {run.path for run in listed if audit.disturbed(run)}
    yield f"{'variant':<27} {'run':>3}  {'ended':<9} {'worst':>9} {'stalled':>9} {'elapsed':>9}"
    for run in listed:
        longest = worst_stream(run.gitks)
        least = ">=" if lost(run) and run.state == COMPLETED else ""
        figures = [
            f"{least}{seconds(worst(longest))}" if longest else "-",
            f"{least}{seconds(stalled_seconds(run))}" if longest else "-",
            seconds(elapsed) if (elapsed := run_elapsed(run)) is not None else "-",
        ]
        yield (
            f"{plain(labels[run.variant], 27):<27} {run.number % 1000:>3}"
            f"{'!' if run.path in marked else ' '} "
            f"{plain(run.state, 9):<9} " + " ".join(f"{figure[:9]:>9}" for figure in figures)
        )
    yield from paragraph(
        "worst: the longest gap of any gitk; stalled: their gaps of 1 s or more, added up."
        + (" !: observers disturbed, in no verdict." if marked else "")
    )
    yield ""


def _notes(
    campaign: Campaign, judged: Compared | UserError | None, causes: Causes
) -> Iterator[str]:
    said = ""
    if isinstance(judged, Compared):
        yield from judged.notes
        if judged.primary:
            yield (
                f"A verdict needs p <= {judged.level:.2g} after Holm's correction; equivalent: "
                f"within {100 * campaign.plan.margin:g} %. Undecided is not: no difference."
            )
        said = " ".join(judged.sentences.values())
    else:
        yield from left_out(campaign)
        yield from cause_table.notes(campaign, causes, display_labels(campaign))
    labels = display_labels(campaign)
    single = [labels[one] for one, runs in campaign.variants().items() if len(runs) == 1]
    if single and "sign, not a finding" not in said:
        names = ", ".join(plain(label, 40) for label in single[:SHOWN])
        more = f" and {len(single) - SHOWN} more" if len(single) > SHOWN else ""
        yield f"One run is a sign, not a finding ({names}{more})."


def left_out(campaign: Campaign) -> Iterator[str]:
    """The runs that are in no figure, and what could not be read; a line for each kind."""
    for what, names in (
        ("Incomplete, left out", campaign.incomplete),
        ("Cut short and repeated, not counted", campaign.set_aside),
        ("With care", campaign.problems),
    ):
        if names:
            yield f"{what}: {plain(', '.join(names), 2000)}"


def worst_stream(streams: list[Stream]) -> Stream | None:
    """The stream with the longest silence."""
    return max(streams, key=worst, default=None)


def run_elapsed(run: Run) -> float | None:
    """Seconds of the workload, as the run's own end says; None if it never began."""
    elapsed = number(run.status.get("elapsed_s"))
    return elapsed if elapsed is None or elapsed >= 0 else None
