# SPDX-License-Identifier: GPL-2.0-or-later
"""A campaign of several runs on one page of at most 75 columns: verdicts, and a line for each run.

What does not fit is in compare.txt (every metric) and details.txt (every run).
"""

from collections import Counter
from collections.abc import Iterator
from typing import get_args

from analysis.figures import observer_faults
from analysis.figures.metrics import (
    Metric,
    added_up,
    frozen_share,
    lost,
    metrics_of,
    primary_figure,
    unfinished,
)
from analysis.figures.stalls import stalled_seconds, worst
from analysis.reading.latency_log import elapsed_time
from analysis.reading.load import Campaign, Run, first_described
from analysis.reading.streams import Stream
from analysis.reading.words import first_names, plural, safe_line, seconds, short_label
from analysis.text import causes as causes_text
from analysis.text import hosts, layout, lost_programs, workload_tables
from analysis.text.compare_text import together, verdict_lines
from analysis.text.layout import WIDTH, paragraph
from analysis.text.machine import differing
from analysis.text.verdict_table import IN_SUMMARY, legend
from analysis.verdicts import cause_table
from analysis.verdicts.cause_table import Causes
from analysis.verdicts.choice import LISTED_RUNS, SHOWN, display_labels, in_order
from analysis.verdicts.compared import Compared
from analysis.verdicts.verdict import Word
from contract.run_files import COMPLETED
from contract.values import OF_REMEDIES
from contract.workload import STALLED
from errors import UserError

IN_WORDS = 6  # variants that have a sentence each


def overview(
    campaign: Campaign, judged: Compared | UserError | None, causes: Causes
) -> Iterator[str]:
    """The page's lines; `judged`: the verdicts, or the reason why there are none."""
    if isinstance(judged, Compared) and judged.others:
        yield from [*paragraph(together(judged)), ""]
        for part in judged.each:
            yield from layout.titled(part.workload.name).splitlines()
            yield from [*_of_one(part.campaign, part, causes), ""]
    else:
        yield from _of_one(campaign, judged, causes)
    more = "- Each run: details.txt."
    if isinstance(judged, Compared):
        more += " Every metric: compare.txt. To explore: index.html."
    yield more


def _of_one(
    campaign: Campaign, judged: Compared | UserError | None, causes: Causes
) -> Iterator[str]:
    """The part of one workload."""
    if isinstance(judged, Compared):
        yield from _answers(judged)
    elif judged is not None:
        yield from paragraph(f"Not compared: {safe_line(judged, 1000)}.")
        yield ""
    if facts := list(_facts(campaign)):
        yield from [*facts, ""]
    yield from _tables(campaign, judged)
    yield from _causes(campaign, judged, causes)
    yield from _runs(campaign, judged)
    if lines := list(hosts.section(campaign, display_labels(campaign), WIDTH)):
        yield from [*lines, ""]
    for note in _notes(campaign, judged, causes):
        yield from paragraph(f"- {safe_line(note, 2000)}", "  ")


def _facts(campaign: Campaign) -> Iterator[str]:
    """The machine, the swaps where they differ, and the programs that were killed."""
    labels = display_labels(campaign)
    for sentence in differing(campaign, labels):
        yield from paragraph(sentence, "  ")
    yield from lost_programs.section(campaign, labels)


def _answers(compared: Compared) -> Iterator[str]:
    """A sentence for each variant, or for many variants the count of each verdict; then a table."""
    for fact in compared.forced:
        text = f"FORCED (--force): these runs are not comparable: {safe_line(fact, 1000)}."
        yield from [*paragraph(text), ""]
    if len(compared.variants) <= IN_WORDS:
        for variant in compared.variants:
            yield from paragraph(safe_line(compared.sentences[variant], 2000), "  ")
    else:
        yield from paragraph(safe_line(compared.sentences[compared.baseline], 2000), "  ")
        yield from paragraph(f"Of the other variants: {tally(compared)}.", "  ")
    yield ""
    if compared.primary:
        yield from verdict_lines(compared, IN_SUMMARY, WIDTH)
        if words := legend(compared):
            yield from paragraph(words)
        yield ""


def _tables(campaign: Campaign, judged: Compared | UserError | None) -> Iterator[str]:
    """The workload's tables, unless the variants are too many for this page."""
    variants = judged.variants if isinstance(judged, Compared) else in_order(campaign)
    if len(variants) <= IN_WORDS:
        labels = display_labels(campaign)
        yield from workload_tables.campaign_lines(campaign, variants, labels, WIDTH)


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
    workload = first_described(campaign.runs).workload
    yield from [*causes_text.section(table, workload, WIDTH), ""]


def tally(compared: Compared) -> str:
    """'2 regressed, 1 improved, 0 equivalent, 116 undecided'."""
    counts = Counter(comparison.verdict for comparison in compared.primary.values())
    # Verdicts that only remedies can have are left out where no variant has them.
    words = [word for word in get_args(Word) if counts[word] or word not in OF_REMEDIES]
    return ", ".join(f"{counts[word]:,} {word}" for word in words)


def _runs(campaign: Campaign, judged: Compared | UserError | None) -> Iterator[str]:
    """A line for each run; of many runs only those that did not complete or were disturbed."""
    order = judged.variants if isinstance(judged, Compared) else in_order(campaign)
    labels = display_labels(campaign)
    by_variant = campaign.variants()
    runs = [run for variant in order for run in by_variant[variant]]
    listed = runs
    if len(runs) > LISTED_RUNS:
        listed = [run for run in runs if run.state != COMPLETED or observer_faults.of_run(run)]
        done = sum(run.state == COMPLETED for run in runs)
        text = f"{plural(len(runs), 'run')}; {done:,} of them completed"
        yield from paragraph(text + (", the others:" if listed else "."))
    if not listed:
        yield ""
        return
    marked = {run.path for run in listed if observer_faults.of_run(run)}
    about = {metric.name for run in listed if (metric := _own_primary(run)) is not None}
    last = "primary" if about else "elapsed"
    width = max([9, *(len(safe_line(run.state, 10)) for run in listed)])
    yield (
        f"{'variant':<22} {'run':>3}  {'ended':<{width}} {'frozen':>6} {'worst':>9} "
        f"{'stalled':>9} {last:>9}"
    )
    for run in listed:
        longest = worst_stream(run.subjects)
        least = ">=" if unfinished(run) or (lost(run) and run.state == COMPLETED) else ""
        share = frozen_share(run)
        figures = [
            f"{least}{seconds(worst(longest))}" if longest else "-",
            f"{least}{seconds(stalled_seconds(run))}" if longest else "-",
            _primary(run) if about else _elapsed(run),
        ]
        yield (
            f"{short_label(labels[run.variant], 22):<22} {run.number % 1000:>3}"
            f"{'!' if run.path in marked else ' '} "
            f"{safe_line(run.state, 10):<{width}} {'-' if share is None else f'{share:.0f} %':>6} "
            + " ".join(f"{figure[:9]:>9}" for figure in figures)
        )
    words = added_up(first_described(listed).workload)
    has_legend = isinstance(judged, Compared) and judged.felt and judged.primary
    parts = [
        ""
        if has_legend
        else "Frozen: share of the time in gaps of 1 s or more; worst: the longest gap of any "
        f"{campaign.subject}; stalled: all such gaps{words and f' of {words}'}.",
        *(f"primary: {title}." for title in sorted(about)),
        "!: observers disturbed, in no verdict." if marked else "",
    ]
    if legend_of_runs := " ".join(filter(None, parts)):
        yield from paragraph(legend_of_runs)
    yield ""


def _own_primary(run: Run) -> Metric | None:
    """The primary metric of the run's workload; None if it is the stalled seconds."""
    primary = metrics_of(run.workload)[0]
    return None if primary.key == STALLED else primary


def _primary(run: Run) -> str:
    value, metric = primary_figure(run), metrics_of(run.workload)[0]
    return "-" if value is None else f"{value:,.{metric.digits}f}"


def _elapsed(run: Run) -> str:
    elapsed = run_elapsed(run)
    return "-" if elapsed is None else seconds(elapsed)


def _notes(
    campaign: Campaign, judged: Compared | UserError | None, causes: Causes
) -> Iterator[str]:
    is_noted = False
    if isinstance(judged, Compared):
        yield from judged.notes
        if judged.primary:
            yield (
                f"A verdict needs p <= {judged.level:.2g} after Holm's correction; equivalent: "
                f"within {100 * campaign.plan.margin:g} %. "
                '"Undecided" does not mean "no difference".'
            )
        of_base = judged.samples[judged.metric.key][judged.baseline]
        is_noted = bool(of_base.values) and of_base.runs == 1  # in the baseline's sentence
    else:
        yield from left_out(campaign)
        yield from cause_table.notes(campaign, causes, display_labels(campaign))
    labels = display_labels(campaign)
    single = [labels[variant] for variant, runs in campaign.variants().items() if len(runs) == 1]
    if single and not is_noted:
        names = first_names([safe_line(label, 40) for label in single], SHOWN)
        yield f"One run is a sign, not a finding ({names})."


def left_out(campaign: Campaign) -> Iterator[str]:
    """The runs that no figure includes, and what could not be read; a line for each kind."""
    for what, names in (
        ("Incomplete, left out", campaign.incomplete),
        ("Cut short and repeated, not counted", campaign.set_aside),
        ("With care", campaign.problems),
    ):
        if names:
            yield f"{what}: {safe_line(', '.join(names), 2000)}"


def worst_stream(streams: list[Stream]) -> Stream | None:
    """The stream with the longest gap; None if there are no streams."""
    return max(streams, key=worst, default=None)


def run_elapsed(run: Run) -> float | None:
    """Seconds that the workload ran, from the run's status; None if it never began."""
    elapsed = elapsed_time(run.status.get("elapsed_s"))
    return elapsed if elapsed is None or elapsed >= 0 else None
