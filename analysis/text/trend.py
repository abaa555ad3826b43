# SPDX-License-Identifier: GPL-2.0-or-later
"""trend.txt: where the metric changed, a sentence for each change, and a row for each kernel."""

from collections.abc import Iterator
from textwrap import wrap

from analysis.reading.words import plural
from analysis.text.layout import grid, titled
from analysis.text.verdict_table import ended, mean_and_sd
from analysis.trends.trend import Change, Track, Trend
from analysis.verdicts.sentences import AT, amount, times
from analysis.verdicts.verdict import Sample


def text(trend: Trend, width: int = 75, colour: bool = False) -> str:
    """The error rate, each track's changes and kernels, and what a reader must know about them."""
    lines = wrap(error_rate(trend), width)
    for different in trend.forced:
        lines += wrap(f"FORCED (--force), not comparable: {different}", width)
    for track in trend.tracks:
        head = f"{track.name}: {track.metric.title}"
        lines += ["", *titled(head).splitlines()]
        for sentence in sentences(track):
            lines += wrap(sentence, width, subsequent_indent="  ", break_on_hyphens=False)
        lines += ["", *grid(_rows(track), width, colour=colour)]
    lines.append("")
    for note in trend.notes:
        lines += wrap(f"- {note}", width, subsequent_indent="  ")
    return "\n".join(line.rstrip() for line in lines).rstrip() + "\n"


def error_rate(trend: Trend) -> str:
    """A sentence on how likely all tests together report a change that is not there."""
    of = "" if len(trend.tracks) == 1 else f" of all {len(trend.tracks)} tracks"
    return (
        f"All tests{of} together report a change that is not there with a probability of at most "
        f"{100 * trend.alpha:.3g} %, however many kernels come."
    )


def sentences(track: Track) -> list[str]:
    """A sentence for each change, or a sentence that there is none and what that does not mean."""
    lines = [change_sentence(track, change) for change in track.changes]
    if len(track.points) == 1:
        return [f"{track.points[0].label} is the only kernel so far: there is no trend yet."]
    begin, last = track.stretches[-1]
    if not track.changes:
        count = plural(len(track.points), "kernel")
        lines.append(
            f"No change is established among {count}; that does not mean that there is none."
        )
    if not track.can_show:
        of = "" if begin == last else f" to {track.points[last].label}"
        lines.append(
            f"So few runs ({track.points[begin].label}{of}) cannot show a change yet, "
            "whatever they measured."
        )
    return lines


def change_sentence(track: Track, change: Change) -> str:
    """'6.14 regressed: 612.0 s a run from 6.14 on, against 468.1 s before (1.31 times, ...'."""
    labels = [point.label for point in track.points]
    words = {"regressed": "regressed", "improved": "improved"}
    verb = words.get(change.verdict, "changed by less than the margin")
    interval = interval_cell(change)
    ratio = (
        f" ({AT[change.bound]}{times(change.ratio)} times{interval and f', {interval}'})"
        if change.ratio
        else ""
    )
    where = f"With {labels[change.earliest]}"
    if change.earliest != change.latest:
        where = f"With one of {labels[change.earliest]} to {labels[change.latest]}"
    when = "at once" if change.found == change.at else f"when {labels[change.found]} came"
    return (
        f"{labels[change.at]} {verb}: {_mean(track, change.after)} a run from there on, against "
        f"{_mean(track, change.before)} before{ratio}; found {when} (p = {change.p:.1e}, "
        f"needed {change.needed:.1e}). {where} it began, in 95 %."
    )


def interval_cell(change: Change) -> str:
    """'95 % interval 1.18 to 1.44', of the ratio after to before; empty without bounds."""
    if change.low is None and change.high is None:
        return ""
    low, high = times(change.low or 0.0), times(change.high) if change.high else "inf"
    return f"95 % interval {low} to {high}"


def _mean(track: Track, sample: Sample) -> str:
    if sample.mean is None:
        return "only failed runs"
    bound = ("at least " if track.metric.sign > 0 else "at most ") if sample.failed else ""
    bound = bound or ("at least " if any(sample.cut) else "")
    return f"{bound}{amount(track.metric, sample.mean)}"


def _rows(track: Track) -> Iterator[list[str]]:
    dated = any(point.date for point in track.points)
    unit = f" {track.metric.unit}" if track.metric.unit else ""
    yield ["kernel", *(["first run"] if dated else []), "ended", f"mean{unit}", "change"]
    by_place = {one.at: one for one in track.changes}
    for place, point in enumerate(track.points):
        sample = point.sample
        date = [f"{point.date:%Y-%m-%d}" if point.date else "-"] if dated else []
        change = by_place.get(place)
        verdict: str = change.verdict if change is not None else ""
        if change is not None and change.ratio:
            verdict = f"{change.bound}{times(change.ratio)} times {verdict}"
        done = f"{ended(sample)} of {sample.runs}"
        yield [point.label, *date, done, mean_and_sd(track.metric, sample), verdict]
