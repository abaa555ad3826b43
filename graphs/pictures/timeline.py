# SPDX-License-Identifier: GPL-2.0-or-later
"""timeline-VARIANT-N.png: the streams and the kernel's counters on one time axis.

Input: a run. A panel names counters that the kernel lacks; they are not drawn as zero.
"""

import re
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis.figures.stalls import freezes, worst
from analysis.reading.latency_log import ROUNDING
from analysis.reading.load import Run
from analysis.reading.streams import STALL, Stream
from analysis.reading.words import safe_line, seconds, with_article
from graphs.pictures import png
from graphs.pictures.panels import Panel, panels_of, steps
from graphs.pictures.style import OKABE_ITO, OPEN, SHADE, WIDTH_PX, fitted, fitted_label, text_width

DPI = 100
FLOOR = 0.02  # s: the bottom of a stream's row, well below a heartbeat
STREAMS_SHOWN = 24
SHORT_NAME, LONGEST_NAME = 12, 18  # characters of a stream's name; names over SHORT_NAME are small


def file_name(run: Run) -> str:
    """The file name of a run's timeline, which is safe for any variant's name."""
    return f"timeline-{re.sub(r'[^A-Za-z0-9._+-]', '_', run.variant)[:100]}-{run.number}.png"


def draw(run: Run, path: Path, runs: int = 1) -> Path | None:
    """Draw a run's timeline; None, and no file, if it has neither streams nor counters."""
    if not run.streams and not run.tables:
        return None
    return png.write(lambda: _figure(run, runs), path)


def _figure(run: Run, runs: int) -> Figure:
    shown = list(run.streams.values())[:STREAMS_SHOWN]
    panels = panels_of(run)
    heights = [0.42] * len(shown) + [1.15] * len(panels)
    gap = 0.16
    top, bottom = 0.95, 0.55
    total = top + sum(heights) + gap * len(panels) + bottom
    width = WIDTH_PX / DPI
    figure = Figure(figsize=(width, total), dpi=DPI)
    until = max([run.last_sent, *(stream.until for stream in shown)]) or 1.0
    tallest = max([10.0, *(worst(stream) for stream in shown)])
    still = freezes(run.subjects)
    subjects = run.workload.subjects
    at = total - top
    first: Axes | None = None
    for index, height in enumerate(heights):
        at -= height + (gap if index >= len(shown) else 0)
        place = (0.105, at / total, 0.755, (height - 0.05) / total)
        axes = figure.add_axes(place, sharex=first)
        first = first or axes
        spans = [(begin, end - begin) for begin, end in still]
        behind: dict[str, Any] = {"transform": axes.get_xaxis_transform(), "zorder": 0}
        axes.broken_barh(spans, (0, 1), color=SHADE, alpha=0.35, lw=0, **behind)
        axes.spines[["top", "right"]].set_visible(False)
        if index < len(shown):
            _stream_row(axes, shown[index], tallest, subject=shown[index].name in subjects)
        else:
            _counter_panel(axes, panels[index - len(shown)], run)
        if index == len(heights) - 1:
            axes.set_xlabel("time since the start of the workload (s)")
        else:
            axes.tick_params(labelbottom=False)
        axes.set_xlim(0, until * 1.005)
    _captions(figure, run, runs, total, len(run.streams) - len(shown))
    return figure


def _captions(figure: Figure, run: Run, runs: int, total: float, hidden: int) -> None:
    kernel = safe_line(run.fact("kernel", "release"), 60)
    room = 0.88 * WIDTH_PX
    which = f", run {run.number} of {runs}" if runs > 1 else ""
    # Bold letters are at most a seventh wider.
    name = fitted_label(run.label, room / 1.15 - text_width(which, 13, DPI), 13, DPI) + which
    figure.text(0.105, 1 - 0.28 / total, name, fontsize=13, weight="bold")
    ended = f"kernel {kernel}; {safe_line(run.state, 20)}: {safe_line(run.status.get('why'))}"
    figure.text(0.105, 1 - 0.50 / total, fitted(ended, room, 9, DPI))
    text = "Rows: the gap that each moment lies in (s, log scale). "
    text += f"Grey: {with_article(run.workload.subject)} is silent for {STALL:.0f} s or more."
    if hidden > 0:
        text += f" {hidden} more streams not shown."
    if any(stream.open_gap >= STALL for stream in run.streams.values()):
        text += " Hatched: silent at the end."
    figure.text(0.105, 1 - 0.72 / total, text, color="#444444")


def _stream_row(axes: Axes, stream: Stream, tallest: float, *, subject: bool) -> None:
    """Draw blocks whose width and height (log scale) are the gap's length; hatch the open gap."""
    colour = OKABE_ITO[0 if subject else 2]
    if len(stream.elapsed):
        edges = np.concatenate(([stream.begin], stream.elapsed))
        # Where lines are missing the gap is unknown, and left white.
        known = np.abs(np.diff(edges) - stream.gap) <= 2 * ROUNDING
        values = np.where(known, np.maximum(stream.gap, FLOOR), np.nan)
        axes.fill_between(*steps(edges, values), FLOOR, color=colour, lw=0)
    if stream.open_gap > FLOOR:
        axes.fill_between(
            [stream.last, stream.until],
            FLOOR,
            stream.open_gap,
            facecolor="white",
            edgecolor=OPEN,
            hatch="////",
            lw=1,
        )
    axes.set_yscale("log")
    axes.set_ylim(FLOOR, tallest * 1.5)
    axes.set_yticks([0.1, 1, 10], ["0.1", "1", "10"], fontsize=6.5)
    axes.set_yticks([], minor=True)
    axes.axhline(STALL, color="#888888", lw=0.5, zorder=1)
    name = safe_line(stream.name, LONGEST_NAME)
    small: dict[str, Any] = {} if len(name) <= SHORT_NAME else {"fontsize": 6.5}
    axes.text(-0.04, 0.5, name, transform=axes.transAxes, ha="right", va="center", **small)
    text = f"worst {seconds(worst(stream))}"
    text += "" if stream.ended else "\nno end seen"
    axes.text(1.015, 0.5, text, transform=axes.transAxes, va="center", fontsize=8)


def _counter_panel(axes: Axes, panel: Panel, run: Run) -> None:
    missing: list[str] = []
    top = 0.0
    for index, curve in enumerate(panel.curves):
        points = curve.read(run)
        if points is None:
            missing.append(curve.name)
            continue
        stamps, values = points
        style: dict[str, Any] = {"color": OKABE_ITO[index], "lw": 1.0, "label": curve.name}
        if index == 0:  # an area and a line differ even without their colours
            shade: dict[str, Any] = {"color": style["color"], "alpha": 0.3, "lw": 0}
            axes.fill_between(*steps(stamps, values), 0, **shade)
        axes.plot(*steps(stamps, values), **style)
        top = max(top, float(np.nanmax(values, initial=0.0)))
    axes.set_ylim(0, top * 1.08 or 1.0)
    axes.set_ylabel(f"{panel.title}\n({panel.unit})", fontsize=8)
    axes.yaxis.set_label_coords(-0.06, 0.5)
    axes.locator_params(axis="y", nbins=4)
    axes.tick_params(axis="y", labelsize=7.5)
    axes.grid(axis="y", color="#E4E4E4", lw=0.6)
    axes.set_axisbelow(True)
    if len(missing) < len(panel.curves):
        axes.legend(
            loc="upper left",
            bbox_to_anchor=(1.005, 1.05),
            frameon=False,
            fontsize=8,
            handlelength=2,
        )
    if missing:
        text = f"not available: {', '.join(missing)}"
        whole = len(missing) == len(panel.curves)
        place = (0.5, 0.5) if whole else (1.015, 0.05)
        axes.text(
            *place,
            text if whole else text.replace(": ", ":\n"),
            transform=axes.transAxes,
            ha="center" if whole else "left",
            va="center" if whole else "bottom",
            fontsize=9 if whole else 7.5,
            color=OPEN,
        )
        if whole:
            axes.set_yticks([])
