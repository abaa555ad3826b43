# SPDX-License-Identifier: GPL-2.0-or-later
"""The programs that were killed in each run, the second figure of a campaign with remedies.

And why a remedy that kills programs killed none.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from analysis.figures import counters
from analysis.figures.lost_programs import lost_programs
from analysis.reading.load import Campaign, Run
from analysis.reading.words import plural, safe_line, seconds
from analysis.text.layout import entry, paragraph
from analysis.verdicts.felt import is_idle
from contract import remedy

MOST_RUNS = 60


def section(campaign: Campaign, labels: Mapping[str, str]) -> Iterator[str]:
    """A line for each run with killed programs, and for each remedy that could have killed some.

    Nothing for a campaign without remedies.
    """
    if not any(variant.remedy for variant in campaign.plan.variants):
        return
    yield from _killed(campaign, labels)
    yield from _idle(campaign, labels)


def _killed(campaign: Campaign, labels: Mapping[str, str]) -> Iterator[str]:
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


def _idle(campaign: Campaign, labels: Mapping[str, str]) -> Iterator[str]:
    """Why remedies that kill programs had no reason to: free memory and swap, and pressure."""
    by_variant = campaign.variants()
    for variant in campaign.plan.variants:
        treated, runs = remedy.of_variant(variant), by_variant.get(variant.label, [])
        if treated is None or treated.acts != remedy.KILLS or not runs:
            continue
        if is_idle(campaign.plan, variant.label, runs):
            name = safe_line(labels.get(variant.label, variant.label), 40)
            yield from paragraph(f"{name} never acted{_reasons(runs)}.", "  ")


def _reasons(runs: Sequence[Run]) -> str:
    memory = _known(counters.least_share(run, "MemAvailable", "MemTotal") for run in runs)
    swap = _known(counters.least_share(run, "SwapFree", "SwapTotal") for run in runs)
    pressure = _known(map(counters.worst_pressure, runs))
    parts = []
    if memory:
        parts.append(f"at least {min(memory):.0f} % of the memory were available")
    if swap:
        parts.append(f"at least {min(swap):.0f} % of the swap were free")
    if pressure:
        parts.append(
            f"in the worst {counters.PRESSURE_SPAN_S:.0f} s all programs waited for memory for "
            f"{max(pressure):.0f} % of the time"
        )
    return f": {', '.join(parts)}" if parts else ""


def _known(values: Iterable[float | None]) -> list[float]:
    return [value for value in values if value is not None]


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
