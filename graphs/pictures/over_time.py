# SPDX-License-Identifier: GPL-2.0-or-later
"""over-time.png, over-time-2.png …: the workload's own diagrams, variants side by side.

Input: the median run of each variant. A column per variant, at most COLUMNS in a picture; a row has
the same scale in all pictures, so that for example a cache that was emptied in one variant only is
visible. Dotted lines mark where the workload's phases begin.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis.figures.curves import phases
from analysis.reading.load import Run
from analysis.reading.words import plural, safe_line
from graphs.pictures import png
from graphs.pictures.panels import Edges, Panel, own_panels, steps
from graphs.pictures.style import OKABE_ITO, OPEN, WIDTH_PX, fitted, fitted_label

DPI = 100
COLUMNS = 3
LEFT, RIGHT, GAP = 78, 166, 26  # px
TOP, ROW, BETWEEN, BOTTOM = 104, 120, 16, 46
GREY = "#555555"
LINES = ("-", (0, (5, 1.5)), (0, (1.5, 1.2)), (0, (5, 1.5, 1.5, 1.5)))


@dataclass(frozen=True)
class Column:
    """A variant's run; of: the variant's number of runs; curves: per panel, each curve's points."""

    run: Run
    label: str
    of: int
    curves: list[list[Edges | None]]


@dataclass(frozen=True)
class Scale:
    """The scale of all pictures: the longest run in seconds, and each panel's highest value."""

    until: float
    tops: list[float]


def draw(
    medians: Sequence[tuple[Run, int]], labels: Mapping[str, str], folder: Path, suffix: str = ""
) -> list[Path]:
    """Draw these runs (each with its variant's number of runs); [] if they have no panels.

    suffix: of the file names, in a campaign of several workloads.
    """
    panels = next((own for run, _ in medians if (own := own_panels(run))), [])
    if not panels:
        return []
    columns = [
        Column(
            run,
            labels[run.variant],
            of,
            [[curve.read(run) for curve in panel.curves] for panel in own_panels(run)],
        )
        for run, of in medians
        if [panel.title for panel in own_panels(run)] == [panel.title for panel in panels]
    ]
    scale = scale_of(columns, len(panels))
    made = []
    for begin in range(0, len(columns), COLUMNS):
        number = begin // COLUMNS + 1
        path = folder / f"over-time{suffix}{f'-{number}' if number > 1 else ''}.png"
        some = columns[begin : begin + COLUMNS]
        made.append(png.write(partial(figure_of, some, panels, scale), path))
    return made


def scale_of(columns: Sequence[Column], panels: int) -> Scale:
    """The scale on which all columns fit."""
    tops = [0.0] * panels
    for column in columns:
        for place, curves in enumerate(column.curves):
            for points in curves:
                if points is not None:
                    tops[place] = max(tops[place], float(np.nanmax(points[1], initial=0.0)))
    return Scale(max(column.run.last_sent for column in columns) or 1.0, tops)


def figure_of(columns: Sequence[Column], panels: Sequence[Panel], scale: Scale) -> Figure:
    """The figure with these columns."""
    height = TOP + len(panels) * (ROW + BETWEEN) + BOTTOM
    figure = Figure(figsize=(WIDTH_PX / DPI, height / DPI), dpi=DPI)
    room = WIDTH_PX - LEFT - RIGHT
    width = (room - GAP * (len(columns) - 1)) / len(columns)
    workload = columns[0].run.workload
    head = fitted(f"{workload.name}: {workload.summary}", WIDTH_PX - 2 * 14, 11, DPI)
    figure.text(14 / WIDTH_PX, 1 - 26 / height, head, fontsize=11, weight="bold")
    for place, column in enumerate(columns):
        x = LEFT + place * (width + GAP)
        of = f"run {column.run.number}, the median of {plural(column.of, 'run')}"
        if column.of == 1:
            of = f"run {column.run.number}"
        name = fitted_label(column.label, width / 1.15, 10, DPI)
        figure.text(x / WIDTH_PX, 1 - 50 / height, name, fontsize=10, weight="bold")
        figure.text(
            x / WIDTH_PX, 1 - 66 / height, fitted(of, width, 8, DPI), fontsize=8, color=GREY
        )
        marks = phases(column.run)
        for row, panel in enumerate(panels):
            y = height - TOP - (row + 1) * ROW - row * BETWEEN
            axes = figure.add_axes((x / WIDTH_PX, y / height, width / WIDTH_PX, ROW / height))
            _panel(axes, panel, column.curves[row], scale.tops[row])
            _phases(axes, marks, named=row == 0, seconds=scale.until, pixels=width)
            axes.set_xlim(0, scale.until)
            if place == 0:
                axes.set_ylabel(f"{panel.title}\n({panel.unit})", fontsize=8)
                axes.yaxis.set_label_coords(-50 / width, 0.5)
            else:
                axes.tick_params(labelleft=False)
            if place == len(columns) - 1:
                axes.legend(
                    loc="upper left",
                    bbox_to_anchor=(1 + 6 / width, 1.04),
                    frameon=False,
                    fontsize=8,
                    handlelength=2.2,
                    borderaxespad=0,
                )
            if row == len(panels) - 1:
                axes.set_xlabel("time since the start of the workload (s)", fontsize=8)
            else:
                axes.tick_params(labelbottom=False)
    return figure


def _panel(axes: Axes, panel: Panel, curves: Sequence[Edges | None], top: float) -> None:
    """Draw a panel; the first curve is also an area, and curves differ in dash and colour."""
    missing = []
    for index, (curve, points) in enumerate(zip(panel.curves, curves, strict=True)):
        colour = OKABE_ITO[index]
        # The legend, beside the last column, has all curves, even if this column lacks some.
        stamps, values = points if points is not None else (np.array([]), np.array([]))
        if points is None:
            missing.append(curve.name)
        elif index == 0:
            axes.fill_between(*steps(stamps, values), 0, color=colour, alpha=0.25, lw=0)
        axes.plot(*steps(stamps, values), color=colour, lw=1.2, ls=LINES[index], label=curve.name)
    axes.set_ylim(0, top * 1.08 or 1.0)
    axes.spines[["top", "right"]].set_visible(False)
    axes.locator_params(axis="y", nbins=4)
    axes.yaxis.set_major_formatter("{x:,.10g}")
    axes.tick_params(labelsize=7.5)
    axes.grid(axis="y", color="#E4E4E4", lw=0.6)
    axes.set_axisbelow(True)
    if missing:
        _say(axes, f"not available: {safe_line(', '.join(missing), 60)}", OPEN)
    elif not any(np.nanmax(points[1], initial=0.0) for points in curves if points is not None):
        _say(axes, "0 all the time", GREY)


def _say(axes: Axes, text: str, colour: str) -> None:
    axes.text(0.5, 0.5, text, transform=axes.transAxes, ha="center", fontsize=8, color=colour)


def _phases(
    axes: Axes,
    marks: Sequence[tuple[float, str]],
    *,
    named: bool,
    seconds: float,
    pixels: float,
) -> None:
    """Mark the phases; their names alternate between two rows, to leave room for short phases."""
    for place, (begin, name) in enumerate(marks):
        axes.axvline(begin, color=GREY, lw=0.8, ls=(0, (1, 2)))
        end = marks[place + 2][0] if place + 2 < len(marks) else seconds
        room = (end - begin) / seconds * pixels - 4
        if named and room > 14:
            axes.text(
                begin + 3 * seconds / pixels,
                1.02 + 0.1 * (place % 2),
                fitted(name, room, 7.5, DPI),
                transform=axes.get_xaxis_transform(),
                fontsize=7.5,
                color=GREY,
            )
