# SPDX-License-Identifier: GPL-2.0-or-later
"""comparison.png: the verdicts in one picture that fits a mail or a slide.

A row for each variant: its runs as dots of the primary metric, their mean, the failed runs, the
ratio to the baseline with its interval over the runs, the verdict as a mark and a word. If there
are too many variants: all of them in a strip, and rows for the baseline, the best and the worst.
"""

import math
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from analysis.figures.metrics import Metric, counted, failed, whole
from analysis.reading.words import safe_line
from analysis.text.campaign_summary import tally
from analysis.text.verdict_table import ratio_cell
from analysis.verdicts.choice import SHOWN, shown, shown_words
from analysis.verdicts.compared import Compared
from analysis.verdicts.sentences import limit_words
from analysis.verdicts.verdict import Comparison, Sample
from contract.workload import STALLED
from graphs.pictures import png
from graphs.pictures.sheet import DPI, GREY, Sheet
from graphs.pictures.style import OPEN, SHADE, VERDICTS, WIDTH_PX, fitted, fitted_label, line_style

LABELS, SECONDS, FAILED, RATIOS = (14, 178), (192, 546), (556, 676), (686, 858)  # px: from, to
WORDS = 872, 1092
HEAD, FOOT, STRIP = 104, 56, 250  # px above the rows, below them, height of the strip
MARK, LINES = 15, 15  # px: width of a mark before the failed runs, height of a line of them
BESIDE = 86  # px from a verdict to its figures, if they share a line
TICKS = (  # of the ratio scale: (limit, ticks)
    (1.4, (0.7, 0.8, 0.9, 1, 1.1, 1.25, 1.4)),
    (2.5, (0.4, 0.5, 0.7, 1, 1.4, 2, 2.5)),
    (8.0, (1 / 8, 1 / 4, 1 / 2, 1, 2, 4, 8)),
    (64.0, (1 / 64, 1 / 16, 1 / 4, 1, 4, 16, 64)),
)


@dataclass(frozen=True)
class _Layout:
    """The rows to draw and their places, in pixels from the upper edge."""

    rows: list[str]
    row: int  # height of a row
    strip: int  # height of the strip of all variants; 0: no strip
    head: int

    @property
    def begin(self) -> int:
        return self.head + self.strip

    @property
    def height(self) -> int:
        return self.begin + self.row * len(self.rows) + FOOT


def draw(compared: Compared, path: Path) -> Path:
    """Draw the picture."""
    return png.write(lambda: _figure(compared), path)


def _layout(compared: Compared) -> _Layout:
    head = HEAD + (18 if compared.forced else 0)
    if len(compared.variants) <= SHOWN:
        rows = compared.variants
        return _Layout(rows, max(36, min(70, 440 // len(rows))), 0, head)
    rows = shown(compared.campaign, compared.variants) or compared.variants[:SHOWN]
    return _Layout(rows, 27, STRIP, head)


def _figure(compared: Compared) -> Figure:
    layout = _layout(compared)
    sheet = Sheet(layout.height)
    _head(sheet, compared, layout)
    if layout.strip:
        _strip(sheet, compared, layout)
    seconds = _axes(sheet, layout, (SECONDS[0], _room(compared)))
    seconds.set_xlim(0, _longest(compared, layout.rows) * 1.04)
    seconds.set_xlabel(_axis(compared.metric))
    base = compared.samples[compared.metric.key][compared.baseline]
    ratios = None
    if compared.primary:
        if base.mean is not None:
            seconds.axvline(base.mean, color="black", lw=1, ls=":")
        ratios = _axes(sheet, layout, RATIOS)
        _ratio_scale(ratios, compared, layout.rows)
    for index, variant in enumerate(layout.rows):
        _row(sheet, compared, layout, variant, index)
        # If all variants have rows, the colours are the same as in the other pictures.
        place = compared.variants.index(variant) if not layout.strip else index
        _runs(seconds, compared.samples[compared.metric.key][variant], index, line_style(place)[0])
        if ratios is not None and variant in compared.primary:
            _ratio(ratios, compared.primary[variant], index)
    return sheet.figure


def _axis(metric: Metric) -> str:
    if metric.key == STALLED:
        return metric.title
    return f"{metric.title}, {metric.unit}" if metric.unit else metric.title


def _room(compared: Compared) -> int:
    """The right end of the seconds, in px: they take the place of unused columns."""
    if not all(map(whole, filter(counted, compared.campaign.runs))):
        return SECONDS[1]
    return FAILED[1] - 12 if compared.primary else WORDS[1]


def _axes(sheet: Sheet, layout: _Layout, columns: tuple[int, int]) -> Axes:
    """Axes over all rows, with centres at 0, 1, ... from the top; every other row has a stripe."""
    rows = len(layout.rows)
    axes = sheet.axes(columns, (layout.begin, layout.height - FOOT), "x")
    axes.set_ylim(rows - 0.5, -0.5)
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)
    for index in range(0, rows, 2):
        axes.axhspan(index - 0.5, index + 0.5, color="#F4F4F4", lw=0, zorder=-1)
    return axes


def _head(sheet: Sheet, compared: Compared, layout: _Layout) -> None:
    room = WIDTH_PX - 2 * LABELS[0]
    name = compared.campaign.path.resolve().name
    metric = compared.metric
    title = fitted(f"{metric.title[:1].upper()}{metric.title[1:]}: {name}", room / 1.15, 13, DPI)
    base = fitted(compared.labels[compared.baseline], 300, 9, DPI)
    cut = any(sample.cut for sample in compared.samples[metric.key].values())
    arrow = "an arrow one that was not done (at least so much), " if cut else ""
    lines = [
        f"A dot is a run (a fresh boot), {arrow}a bar the mean of those that did not fail; "
        f"{'less' if metric.sign > 0 else 'more'} is better."
    ]
    if compared.primary:
        lines.append(f"Against {base} (dotted line): {tally(compared)}.")
    sheet.text(LABELS[0], 26, title, fontsize=13, weight="bold")
    for index, line in enumerate(lines):
        sheet.text(LABELS[0], 48 + 18 * index, fitted(line, room, 9, DPI), color=GREY)
    if compared.forced:
        forced = f"FORCED (--force): not comparable: {safe_line('; '.join(compared.forced))}"
        at = 48 + 18 * len(lines)
        sheet.text(LABELS[0], at, fitted(forced, room, 9, DPI), color=OPEN)
    if layout.strip:
        caption = f"{shown_words(SHOWN, len(compared.variants), compared.metric)}:"
        sheet.text(LABELS[0], layout.begin - 30, caption, color=GREY)
    heads = [(RATIOS[0], "ratio to the baseline, with its interval")] if compared.primary else []
    if not all(map(whole, filter(counted, compared.campaign.runs))):
        heads.append((FAILED[0], "failed, unfinished"))
    for x, text in heads:
        sheet.text(x, layout.begin - 8, text, fontsize=8, color=GREY)


def _row(sheet: Sheet, compared: Compared, layout: _Layout, variant: str, index: int) -> None:
    """The texts of a variant's row: its label, its failed runs, the verdict."""
    y = layout.begin + (index + 0.5) * layout.row
    middle: dict[str, Any] = {"va": "center_baseline"}
    label = fitted_label(compared.labels[variant], LABELS[1] - LABELS[0], 9, DPI)
    sheet.text(LABELS[1], y, label, ha="right", **middle)
    runs = compared.campaign.variants()[variant]
    states = Counter(safe_line(run.state, 10) for run in runs if counted(run) and not whole(run))
    if states:
        mark = "✕" if any(failed(run) for run in runs) else "▷"
        lines = [f"{count} {state}" for state, count in states.items()]
        if layout.row < LINES * len(lines):
            lines = [", ".join(lines)]
        fit = [fitted(line, FAILED[1] - FAILED[0] - MARK, 9, DPI) for line in lines]
        sheet.text(FAILED[0], y, mark, color=OPEN, weight="bold", **middle)
        sheet.text(FAILED[0] + MARK, y, "\n".join(fit), color=OPEN, weight="bold", **middle)
    comparison = compared.primary.get(variant)
    if comparison is None:
        caption = "baseline" if compared.primary else ""
        sheet.text(WORDS[0], y, caption, color=GREY, **middle)
        return
    colour = VERDICTS[comparison.verdict][0]
    ratio = ratio_cell(comparison) + limit_words(comparison, brief=True)
    small = ratio if comparison.ratio is not None else ""
    ends = compared.failures[variant].verdict
    if (ends in ("regressed", "improved")) and states:
        small = "; ".join(filter(None, (small, f"failures {ends}")))
    small = fitted(small, WORDS[1] - WORDS[0] - (BESIDE if layout.strip else 0), 8, DPI)
    right, lower = (BESIDE, 0) if layout.strip else (0, 8)
    style: dict[str, Any] = {"color": colour, "weight": "bold", **middle}
    sheet.text(WORDS[0], y - lower, comparison.verdict, **style)
    sheet.text(WORDS[0] + right, y + lower, small, fontsize=8, **middle)


def _longest(compared: Compared, variants: list[str]) -> float:
    """The highest figure of these variants' runs that did not fail, in the metric's unit."""
    samples = compared.samples[compared.metric.key]
    return (
        max((value for variant in variants for value in samples[variant].known), default=0.0) or 1.0
    )


def _runs(axes: Axes, sample: Sample, index: int, colour: str) -> None:
    """Draw the runs that did not fail, from the first (top) to the last, and their mean."""
    count = len(sample.values)
    height = np.linspace(-0.22, 0.22, count) if count > 1 else np.zeros(count)
    ended, known = np.isfinite(sample.most), np.isfinite(sample.values)
    for marker, these in (("o", ended), (">", known & ~ended)):
        axes.scatter(
            np.array(sample.values)[these],
            index + height[these],
            s=34,
            marker=marker,
            color=colour,
            edgecolor="white",
            lw=0.7,
            zorder=3,
            clip_on=False,
        )
    if sample.mean is not None and len(sample.known) > 1:
        axes.plot([sample.mean] * 2, [index - 0.32, index + 0.32], color="black", lw=2, zorder=4)


def _ratio_scale(axes: Axes, compared: Compared, variants: list[str]) -> None:
    """Set a scale of ratios that all bounds fit on, if possible; shade the margin."""
    margin = 1 + compared.campaign.plan.margin
    drawn = [compared.primary[one] for one in variants if one in compared.primary]
    bounds = [bound for one in drawn for bound in (one.ratio, one.low, one.high) if bound]
    far = max([max(bound, 1 / bound) for bound in bounds if math.isfinite(bound)] + [margin])
    reach, ticks = next((scale for scale in TICKS if scale[0] >= far * 1.02), TICKS[-1])
    axes.set_xscale("log")
    axes.set_xlim(1 / reach / 1.05, reach * 1.05)
    words = [f"{x:g}" if reach < 4 or x >= 1 else f"1/{1 / x:.0f}" for x in ticks]
    axes.set_xticks(ticks, words, fontsize=7.5)
    axes.xaxis.set_minor_locator(NullLocator())
    axes.axvspan(1 / margin, margin, color=SHADE, alpha=0.35, lw=0, zorder=0)
    axes.axvline(1, color="black", lw=1, ls=":")
    axes.set_xlabel(f"grey: within {100 * compared.campaign.plan.margin:g} %", fontsize=8)


def _ratio(axes: Axes, comparison: Comparison, index: int) -> None:
    """Draw the ratio's mark and interval; an arrow where the interval leaves the scale."""
    if not comparison.ratio:
        return
    colour, marker = VERDICTS[comparison.verdict]
    least, most = axes.get_xlim()
    if comparison.low is not None or comparison.high is not None:
        low, high = comparison.low or 0.0, math.inf if comparison.high is None else comparison.high
        ends = [max(low, least), min(high, most)]
        axes.plot(ends, [index] * 2, color=colour, lw=1.6, zorder=2)
        for beyond, edge, arrow in ((low < least, least, "<"), (high > most, most, ">")):
            if beyond:
                axes.plot([edge], [index], color=colour, marker=arrow, ms=5, clip_on=False)
    at = min(max(comparison.ratio, least), most)
    face = "white" if comparison.verdict == "undecided" else colour
    axes.plot([at], [index], color=colour, marker=marker, ms=7, mfc=face, mew=1.6, zorder=3)


def _strip(sheet: Sheet, compared: Compared, layout: _Layout) -> None:
    """Draw all variants by their mean, the best first; mark those with failed runs at the top."""
    samples = compared.samples[compared.metric.key]
    means = {name: samples[name].mean for name in compared.variants}
    metric = compared.metric
    ranked = sorted(
        means,
        key=lambda name: math.inf if (mean := means[name]) is None else metric.sign * mean,
    )
    height = layout.strip - 108
    top = layout.head + 30
    left, right = LABELS[0] + 46, WORDS[1] - 4
    axes = sheet.axes((left, right), (top, top + height), "y")
    highest = _longest(compared, compared.variants) * 1.05
    axes.set_ylim(0, highest)
    axes.set_xlim(-1, len(ranked))
    axes.set_xticks([])
    order = "the least to the most stalled" if metric.key == STALLED else "the best to the worst"
    axes.set_title(fitted(metric.name, right - left, 8, DPI), loc="left", pad=4, fontsize=8)
    axes.set_xlabel(
        f"all {len(ranked):,} variants, from {order}; line: its runs, mark: their mean",
        fontsize=8,
    )
    base = samples[compared.baseline].mean
    if base is not None:
        axes.axhline(base, color="black", lw=1, ls=":")
    for at, variant in enumerate(ranked):
        known = samples[variant].known
        if known:
            axes.plot([at, at], [min(known), max(known)], color=SHADE, lw=1.5, zorder=1)
    words = {name: compared.primary[name].verdict for name in ranked if name in compared.primary}
    for word, (colour, marker) in VERDICTS.items():
        places = [at for at, name in enumerate(ranked) if words.get(name) == word and means[name]]
        if not places:
            continue
        heights = [means[ranked[at]] or 0.0 for at in places]
        face = "white" if word == "undecided" else colour
        style: dict[str, Any] = {"color": colour, "mfc": face, "ms": 4.5, "ls": "", "zorder": 3}
        axes.plot(places, heights, marker=marker, label=f"{word} ({len(places)})", **style)
    if base is not None:
        at = ranked.index(compared.baseline)
        axes.plot([at], [base], "D", color="black", ms=5, ls="", label="baseline", zorder=4)
    bad = [at for at, name in enumerate(ranked) if samples[name].failed]
    if bad:
        style = {"color": OPEN, "ms": 6, "mew": 1.6, "ls": "", "clip_on": False}
        axes.plot(bad, [highest] * len(bad), marker="x", label="with failed runs", **style)
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.04), ncols=6, frameon=False, fontsize=8)
