# SPDX-License-Identifier: GPL-2.0-or-later
"""One run's streams as text: the table of their stalls, and how late timed streams were."""

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
from analysis.reading.words import NOT_AVAILABLE, plural, safe_line, seconds
from analysis.text.layout import entry
from contract.run_files import HEARTBEAT, PLAYER
from contract.workload import DESKTOP

NAME = 12  # columns of a stream's name


def stream_table(run: Run) -> Iterator[str]:
    """A row for each stream, in seconds: when it ended, its stalls, its longest and last gap."""
    if not run.streams:
        yield "No stream."
        return
    head = "".join(f"{f'>= {threshold:g} s':>13}" for threshold in THRESHOLDS)
    yield f"{'':<12}{'':>8}{head}{'worst':>8}{'open':>8}"
    yield f"{'stream':<12}{'elapsed':>8}" + f"{'n':>5}{'s':>8}" * 3 + f"{'gap':>8}" * 2
    for stream in run.streams.values():
        name = safe_line(stream.name, 40)
        if len(name) > NAME:
            yield name
            name = ""
        row = f"{name:<{NAME}}{_cell(stream.until)}"
        for total in totals(stream):
            paced = kind(stream.name) in PACED and total.threshold <= PACE
            row += f"{'-':>5}{'-':>8}" if paced else _count(total.count) + _cell(total.seconds)
        # A gap whose end was not seen is at least this long.
        yield row + _cell(worst(stream)) + _cell(stream.open_gap, "" if stream.ended else "+")
    if any(kind(name) in PACED for name in run.streams):
        yield f"- not counted: these print every {PACE} s. Their lateness is below."
    if not all(stream.ended for stream in run.streams.values()):
        yield "+ its end was not seen: silent until the machine was last heard."


def _cell(value: float, mark: str = "") -> str:
    text = f"{value:.1f}{mark}"
    return f"{text:>8}" if len(text) < 8 else f"{f'{value:.1e}{mark}':>8}"


def _count(value: int) -> str:
    return f"{value:>5}" if value < 10000 else f"{f'{value // 1000}k':>5}"


def deadline_lines(run: Run) -> Iterator[str]:
    """Entries on audio skips, and on the deadlines that heartbeats missed."""
    others = [beat for beat in run.streams if kind(beat) == HEARTBEAT and beat != HEARTBEAT]
    for name, stream_name, tolerance in (
        ("audio", PLAYER, SKIP_TOLERANCE),
        (HEARTBEAT, HEARTBEAT, BEAT_TOLERANCE),
        *((safe_line(beat, 40), beat, BEAT_TOLERANCE) for beat in others),
    ):
        stream = run.streams.get(stream_name)
        delays = lateness(stream, tolerance) if stream else None
        if stream is None and run.workload.name != DESKTOP:
            continue
        if stream is None or delays is None:
            yield from entry(name, NOT_AVAILABLE)
            continue
        if name == "audio":
            text = plural(len(delays.spans), "skip")
            if delays.spans:
                text += f", {seconds(sum(delays.spans))} in all, the longest "
                text += seconds(max(delays.spans))
        else:
            text = f"{delays.missed:,} of {delays.deadlines:,} deadlines missed by more than "
            text += f"{tolerance} s, the worst by {delays.worst:.3f} s"
        if any(stall.open for stall in stalls(stream)) and not stream.ended:
            text += f"; silent for the last {seconds(stream.open_gap)}"
        if delays.unread:
            text += f"; {plural(delays.unread, 'line')} without a lateness not counted"
        yield from entry(name, text)


def key_lines(run: Run) -> Iterator[str]:
    """The entry on how long keys took; nothing for a run that pressed no keys."""
    asked = run.fact("keys") is not None
    for name, pressed, wanted in (
        ("keys", run.keys, asked),
        ("in windows", run.window_keys, bool(run.key_windows)),
    ):
        figures = keys.key_figures(pressed) if pressed else None
        if figures is not None:
            yield from entry(name, keys.words(figures))
        elif wanted:
            yield from entry(name, NOT_AVAILABLE)
