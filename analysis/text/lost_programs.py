# SPDX-License-Identifier: GPL-2.0-or-later
"""The programs that were killed in each run: the second figure of a campaign with remedies."""

from collections.abc import Iterator, Mapping

from analysis.figures.lost_programs import lost_programs
from analysis.reading.load import Campaign, Run
from analysis.reading.words import plural, safe_line, seconds
from analysis.text.layout import entry, paragraph

MOST_RUNS = 60


def section(campaign: Campaign, labels: Mapping[str, str]) -> Iterator[str]:
    """A line for each run with killed programs; nothing for a campaign without remedies."""
    if not any(variant.remedy for variant in campaign.plan.variants):
        return
    losses = [(run, words) for run in campaign.runs if (words := of_run(run))]
    if not losses:
        yield from paragraph("No program was killed in any run.")
        return
    yield "Programs killed:"
    for run, words in losses[:MOST_RUNS]:
        name = f"{safe_line(labels.get(run.variant, run.variant), 40)}, run {run.number}"
        yield from paragraph(f"  {name}: {words}", "    ")
    if len(losses) > MOST_RUNS:
        yield f"  and in {plural(len(losses) - MOST_RUNS, 'more run')}"


def of_run(run: Run) -> str:
    """'gitk-2 after 31.2 s (frozen for 12.0 s of it)'; "" if no program was killed."""
    return ", ".join(
        f"{safe_line(one.stream, 40)} after {seconds(one.at)} "
        f"(frozen for {seconds(one.frozen)} of it)"
        for one in lost_programs(run)
    )


def lines(run: Run) -> Iterator[str]:
    """The entries of a run's summary: the killed programs, and the end of the remedy's log."""
    if words := of_run(run):
        yield from entry("killed", words)
    log = run.fact("remedy", "log")
    for line in (log if isinstance(log, list) else [])[-3:]:
        yield from entry("its daemon", safe_line(line, 200))
