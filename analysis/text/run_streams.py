# SPDX-License-Identifier: GPL-2.0-or-later
"""One run's streams in letters: the table of their stalls, and how late those on a clock were."""

from collections.abc import Iterator

from analysis.figures import keys
from analysis.figures.stalls import (
    BEAT_TOLERANCE,
    PACE,
    PACED,
    SKIP_TOLERANCE,
    THRESHOLDS,
    kind,
    lateness,
    stalls,
    totals,
    worst,
)
from analysis.reading.load import Run
from analysis.reading.words import NOT_AVAILABLE, plain, plural, seconds
from analysis.text.layout import entry
from contract.run_files import HEARTBEAT, PLAYER
from contract.workload import DESKTOP

NAME = 12  # columns of a stream's name


def stream_table(run: Run) -> Iterator[str]:
    """A row for each stream: when it ended, its stalls, its longest gap."""
    if not run.streams:
        yield "No stream."
        return
    head = "".join(f"{f'>= {threshold:g} s':>13}" for threshold in THRESHOLDS)
    yield f"{'':<12}{'':>8}{head}{'worst':>8}{'open':>8}"
    yield f"{'stream':<12}{'elapsed':>8}" + f"{'n':>5}{'s':>8}" * 3 + f"{'gap':>8}" * 2
    for stream in run.streams.values():
        name = plain(stream.name, 40)
        if len(name) > NAME:
            yield name
            name = ""
        row = f"{name:<{NAME}}{_cell(stream.until)}"
        for total in totals(stream):
            paced = kind(stream.name) in PACED and total.threshold <= PACE
            row += f"{'-':>5}{'-':>8}" if paced else _count(total.count) + _cell(total.seconds)
        # A gap that nobody saw end is at least this long.
        yield row + _cell(worst(stream)) + _cell(stream.open_gap, "" if stream.ended else "+")
    if any(kind(name) in PACED for name in run.streams):
        yield f"- every line would count: these come each {PACE} s. Their lateness is below."
    if not all(stream.ended for stream in run.streams.values()):
        yield "+ its end was not seen: silent until the machine was last heard."


def _cell(value: float, mark: str = "") -> str:
    text = f"{value:.1f}{mark}"
    return f"{text:>8}" if len(text) < 8 else f"{f'{value:.1e}{mark}':>8}"


def _count(value: int) -> str:
    return f"{value:>5}" if value < 10000 else f"{f'{value // 1000}k':>5}"


def deadline_lines(run: Run) -> Iterator[str]:
    """Audio skips, and the deadlines that heartbeats missed."""
    others = [one for one in run.streams if kind(one) == HEARTBEAT and one != HEARTBEAT]
    for name, stream_name, tolerance in (
        ("audio", PLAYER, SKIP_TOLERANCE),
        (HEARTBEAT, HEARTBEAT, BEAT_TOLERANCE),
        *((plain(one, 40), one, BEAT_TOLERANCE) for one in others),
    ):
        stream = run.streams.get(stream_name)
        found = lateness(stream, tolerance) if stream else None
        if stream is None and run.workload.name != DESKTOP:
            continue
        if stream is None or found is None:
            yield from entry(name, NOT_AVAILABLE)
            continue
        if name == "audio":
            text = plural(len(found.spans), "skip")
            if found.spans:
                text += f", {seconds(sum(found.spans))} in all, the longest "
                text += seconds(max(found.spans))
        else:
            text = f"{found.missed:,} of {found.deadlines:,} deadlines missed by more than "
            text += f"{tolerance} s, the worst by {found.worst:.3f} s"
        if any(stall.open for stall in stalls(stream)) and not stream.ended:
            text += f"; silent for the last {seconds(stream.open_gap)}"
        if found.unread:
            text += f"; {plural(found.unread, 'line')} without a lateness not counted"
        yield from entry(name, text)


def key_lines(run: Run) -> Iterator[str]:
    """How long keys took; nothing of a run that pressed none."""
    found = keys.key_figures(run.keys) if run.keys else None
    if found is not None:
        yield from entry("keys", keys.words(found))
    elif run.fact("keys") is not None:
        yield from entry("keys", NOT_AVAILABLE)
