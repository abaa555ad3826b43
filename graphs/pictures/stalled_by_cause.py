# SPDX-License-Identifier: GPL-2.0-or-later
"""causes.png: why each variant stalled: a bar of its mean stalled seconds per run, split by cause.

A cause has the same colour and hatch in every picture: each kind of cause has a colour, and the
hatch distinguishes causes of the same kind. Unexplained time is light grey, hatched, and last. If
there are too many variants: the baseline, the best and the worst.
"""

from dataclasses import dataclass
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from analysis.figures.metrics import added_up
from analysis.reading.words import plural_subject
from analysis.stall_causes.causes import UNEXPLAINED
from analysis.text.causes import total_words
from analysis.verdicts.cause_table import ENDED_WITH_EVIDENCE, OTHER, SHORT
from analysis.verdicts.choice import SHOWN, shown, shown_words
from analysis.verdicts.compared import Compared
from graphs.pictures import png
from graphs.pictures.sheet import DPI, GREY, Sheet
from graphs.pictures.style import CAUSES, WIDTH_PX, fitted, fitted_label, text_width

LABELS, BARS = (14, 178), (192, 956)  # px: from, to
HEAD, FOOT = 84, 56  # px above the legend, below the bars
LEGEND_ROW, BOX = 20, 26  # px: height of a row, width of a patch
INSIDE = 8  # font size in points of the shares inside a bar, where there is room


@dataclass(frozen=True)
class _Layout:
    rows: list[str]
    row: int  # px, height of a row
    legend: list[list[str]]  # causes, row by row

    @property
    def begin(self) -> int:
        return HEAD + LEGEND_ROW * len(self.legend) + 12

    @property
    def height(self) -> int:
        return self.begin + self.row * len(self.rows) + FOOT


def draw(compared: Compared, path: Path) -> Path | None:
    """Draw the picture; None if no run has evidence, or if there was no stall."""
    if not compared.causes.samples or compared.causes.no_stall:
        return None
    return png.write(lambda: figure_of(compared), path, hatch_linewidth=0.8)


def _layout(compared: Compared) -> _Layout:
    rows = compared.variants
    if len(rows) > SHOWN:
        rows = shown(compared.campaign, rows) or rows[:SHOWN]
    legend: list[list[str]] = [[]]
    used = 0.0
    for key in compared.causes.shown:
        size = BOX + text_width(SHORT[key], 9, DPI) + 18
        if used + size > WIDTH_PX - 2 * LABELS[0]:
            legend.append([])
            used = 0.0
        legend[-1].append(key)
        used += size
    return _Layout(rows, max(30, min(64, 400 // len(rows))), legend)


def figure_of(compared: Compared) -> Figure:
    """The picture, for a report with stalls and evidence."""
    layout = _layout(compared)
    sheet = Sheet(layout.height)
    _head(sheet, compared, layout)
    _legend(sheet, layout)
    left, right = BARS
    axes = sheet.axes(BARS, (layout.begin, layout.height - FOOT), "x")
    axes.set_ylim(len(layout.rows) - 0.5, -0.5)
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)
    longest = max((compared.causes.total[row] or 0.0 for row in layout.rows), default=0.0) or 1.0
    axes.set_xlim(0, longest * 1.01)
    words = added_up(compared.workload)
    unit = f"stalled seconds a run{words and f', {words}'}"
    x_label = f"{unit}: mean of the runs {ENDED_WITH_EVIDENCE}"
    x_label += "; ≥: up to the limit" if compared.causes.to_limit & set(layout.rows) else ""
    axes.set_xlabel(fitted(x_label, WIDTH_PX - 2 * LABELS[0], 10, DPI))
    for index, variant in enumerate(layout.rows):
        y = layout.begin + (index + 0.5) * layout.row
        label = fitted_label(compared.labels[variant], LABELS[1] - LABELS[0], 9, DPI)
        sheet.text(LABELS[1], y, label, ha="right", va="center_baseline")
        _bar(axes, compared, variant, index, (right - left) / (longest * 1.01))
    return sheet.figure


def _bar(axes: Axes, compared: Compared, variant: str, index: int, scale: float) -> None:
    """Draw a variant's bar; `scale`: pixels per second."""
    total = compared.causes.total[variant]
    if total is None:
        axes.text(0, index, "  no run that counts has evidence", va="center_baseline", color=GREY)
        return
    begin = 0.0
    for key in compared.causes.shown:
        value = compared.causes.mean(key, variant) or 0.0
        look = CAUSES[key]
        axes.barh(
            index,
            value,
            0.66,
            left=begin,
            facecolor=look.colour,
            edgecolor=look.ink,
            hatch=look.hatch,
            linewidth=0.8,
        )
        share = f"{100 * value / total:.0f} %" if total else ""
        if share and text_width(share, INSIDE, DPI) + 10 <= value * scale:
            axes.text(
                begin + value / 2,
                index,
                share,
                ha="center",
                va="center_baseline",
                fontsize=INSIDE,
                bbox={"facecolor": "white", "edgecolor": "none", "pad": 1.5, "alpha": 0.9},
            )
        begin += value
    words = " ".join(total_words(compared.causes, variant)).rstrip()
    axes.text(begin, index, f" {words}", va="center_baseline", fontsize=8.5)


def _head(sheet: Sheet, compared: Compared, layout: _Layout) -> None:
    room = WIDTH_PX - 2 * LABELS[0]
    name = compared.campaign.path.resolve().name
    title = fitted(f"Stalled seconds by cause: {name}", room / 1.15, 13, DPI)
    sheet.text(LABELS[0], 26, title, fontsize=13, weight="bold")
    words = (
        f"What the silent {plural_subject(compared.campaign.subject)} waited for: all their "
        "stalls of 1 s and more, added up; in % of the bar where there is room."
    )
    if len(layout.rows) < len(compared.variants):
        words = f"{shown_words(SHOWN, len(compared.variants), compared.metric)}."
    sheet.text(LABELS[0], 48, fitted(words, room, 9, DPI), color=GREY)
    alike = f"Other: causes that are nowhere above 1 %. {SHORT[UNEXPLAINED].capitalize()}: "
    alike += "time that could not be attributed."
    if OTHER not in compared.causes.shown:
        alike = alike.partition(". ")[2]
    sheet.text(LABELS[0], 66, fitted(alike, room, 9, DPI), color=GREY)


def _legend(sheet: Sheet, layout: _Layout) -> None:
    for index, row in enumerate(layout.legend):
        x, y = float(LABELS[0]), HEAD + LEGEND_ROW * (index + 0.5) - 4
        for key in row:
            _patch(sheet, x, y, key)
            sheet.text(x + BOX, y, SHORT[key], va="center_baseline")
            x += BOX + text_width(SHORT[key], 9, DPI) + 18


def _patch(sheet: Sheet, x: float, y: float, key: str) -> None:
    """Draw the colour and hatch of a cause, with its centre y pixels from the top."""
    corner = (x / WIDTH_PX, 1 - (y + 6) / sheet.height)
    look = CAUSES[key]
    sheet.figure.add_artist(
        Rectangle(
            corner,
            20 / WIDTH_PX,
            12 / sheet.height,
            facecolor=look.colour,
            edgecolor=look.ink,
            hatch=look.hatch,
            linewidth=0.8,
        )
    )
