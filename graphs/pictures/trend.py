# SPDX-License-Identifier: GPL-2.0-or-later
"""trend.png: a metric from kernel to kernel, its levels between changes, and the changes.

A panel for each track: a dot for each run, a line for the median between two changes, a dashed line
for each change, and a shaded range where it may have begun.
"""

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis.text.trend import error_rate
from analysis.trends.trend import Change, Track, Trend
from analysis.verdicts.sentences import times
from graphs.pictures import png
from graphs.pictures.sheet import DPI, GREY, Sheet
from graphs.pictures.style import (
    OKABE_ITO,
    OPEN,
    SHADE,
    VERDICTS,
    WIDTH_PX,
    fitted,
    fitted_label,
    text_width,
)

DOTS = (
    "A dot is a run, a cross a run that failed, a line the median between two changes; "
    "the shade is where a change may have begun."
)
LEFT, RIGHT = 74, 1084  # px of the axes
HEAD, PANEL, OVER, GAP = (
    76,
    230,
    66,
    10,
)  # px: above all panels, of the axes, above them, between panels
MOST_LABELS = 60
UPRIGHT = 14  # with more kernels their names are vertical
POINTS = 8  # font size of the kernels' names


@dataclass(frozen=True)
class _Place:
    """The place of a track's panel, in px from the upper edge."""

    track: Track
    top: int
    under: int  # px below the axes for the names of the kernels

    @property
    def bottom(self) -> int:
        return self.top + PANEL


def draw(trend: Trend, path: Path) -> Path:
    """Draw the picture."""
    return png.write(lambda: _figure(trend), path)


def _figure(trend: Trend) -> Figure:
    places: list[_Place] = []
    top = HEAD + (18 if trend.forced else 0)
    for track in trend.tracks:
        longest = max(text_width(_short(point.label), POINTS, DPI) for point in track.points)
        upright = len(track.points) > UPRIGHT
        under = int(longest if upright else 0.6 * longest) + 22
        places.append(_Place(track, top + OVER, under))
        top = places[-1].bottom + under + GAP
    sheet = Sheet(top)
    title = "Trend by version" if trend.order == "version" else "Trend by date"
    sheet.text(14, 24, title, fontsize=13, weight="bold")
    lines = [DOTS, error_rate(trend)]
    if trend.forced:
        lines.append(f"FORCED (--force), not comparable: {'; '.join(trend.forced)}")
    for index, line in enumerate(lines):
        how = {"color": OPEN if index > 1 else GREY}
        sheet.text(14, 46 + 18 * index, fitted(line, WIDTH_PX - 28, 9, DPI), **how)
    for place in places:
        _panel(sheet, place)
    return sheet.figure


def _panel(sheet: Sheet, place: _Place) -> None:
    track, count = place.track, len(place.track.points)
    axes = sheet.axes((LEFT, RIGHT), (place.top, place.bottom), "y")
    axes.set_xlim(-0.6, count - 0.4)
    highest = max((v for point in track.points for v in point.sample.known), default=0.0) or 1.0
    lowest = min((v for point in track.points for v in point.sample.known), default=0.0)
    axes.set_ylim(min(0.0, lowest), highest * 1.06)
    metric = track.metric
    axes.set_ylabel(fitted(metric.name, PANEL, 8, DPI), fontsize=8)
    name = fitted(f"{track.name}: {metric.title}, {_verdict(track)}", WIDTH_PX - 28, 10, DPI)
    sheet.text(14, place.top - OVER + 20, name, fontsize=10, weight="bold")
    _names(axes, track)
    _runs(axes, track, highest * 1.06)
    for begin, last in track.stretches:
        ended = [v for point in track.points[begin : last + 1] for v in point.sample.ended]
        if ended:
            axes.plot([begin - 0.45, last + 0.45], [np.median(ended)] * 2, color="black", lw=1.8)
    taken: list[tuple[float, int]] = []  # right end of the words on each line
    for change in track.changes:
        _change(axes, change, (RIGHT - LEFT) / count, taken)


def _verdict(track: Track) -> str:
    return "no change established" if not track.changes else f"last change: {track.verdict}"


def _short(label: str) -> str:
    return fitted_label(label, 170, POINTS, DPI)


def _names(axes: Axes, track: Track) -> None:
    count = len(track.points)
    step = math.ceil(count / MOST_LABELS)
    shown = sorted({*range(0, count, step)})
    upright = count > UPRIGHT
    axes.set_xticks(
        shown,
        [_short(track.points[place].label) for place in shown],
        fontsize=POINTS,
        rotation=90 if upright else 30,
        ha="center" if upright else "right",
        va="top",
        rotation_mode="default" if upright else "anchor",
    )
    axes.tick_params(axis="y", labelsize=8)


def _runs(axes: Axes, track: Track, top: float) -> None:
    """Draw the runs; unfinished runs as arrows upwards, failed runs at the upper edge."""
    many = len(track.points) > UPRIGHT
    for place, point in enumerate(track.points):
        values = point.sample.values
        aside = np.linspace(-0.18, 0.18, len(values)) if len(values) > 1 else np.zeros(1)
        ended, known = np.isfinite(point.sample.most), np.isfinite(values)
        for marker, these in (("o", ended), ("^", known & ~ended)):
            axes.scatter(
                (place + aside)[these],
                np.array(values)[these],
                s=12 if many else 24,
                marker=marker,
                color=OKABE_ITO[0],
                edgecolor="white",
                lw=0.4,
                zorder=3,
            )
        bad = (place + aside)[~known]
        axes.plot(bad, [top] * len(bad), "x", color=OPEN, ms=6, mew=1.6, clip_on=False)


def _change(axes: Axes, change: Change, px: float, taken: list[tuple[float, int]]) -> None:
    """Draw a change: its line, its shaded range, and its ratio above the axes."""
    colour, marker = VERDICTS[change.verdict]
    axes.axvline(change.at - 0.5, color=colour, lw=1.3, ls="--", zorder=2)
    if change.earliest != change.latest:
        begin, end = change.earliest - 0.5, change.latest - 0.5
        axes.axvspan(begin, end, color=SHADE, alpha=0.3, lw=0, zorder=0)
    words: str = change.verdict
    if change.ratio:
        words = f"{change.bound}{times(change.ratio)} times"
        if change.low is not None or change.high is not None:
            most = "inf" if change.high is None else times(change.high)
            words += f" ({times(change.low or 0.0)}-{most})"
    left = (change.at - 0.5) * px
    width = text_width(words, 8, DPI) + 18
    left = min(left, axes.get_xlim()[1] * px - width)
    line = next((n for n in range(3) if all(right <= left for right, m in taken if m == n)), 0)
    taken.append((left + width, line))
    at = 1.05 + 0.065 * line
    transform = axes.get_xaxis_transform()
    axes.plot(
        [change.at - 0.5], [at], marker, color=colour, ms=6, transform=transform, clip_on=False
    )
    axes.text(
        (left + 9) / px, at, words, fontsize=8, color=colour, va="center", transform=transform
    )
