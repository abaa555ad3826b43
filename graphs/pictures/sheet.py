# SPDX-License-Identifier: GPL-2.0-or-later
"""A figure whose parts are placed in pixels from its upper left corner."""

from typing import Any, Literal

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from graphs.pictures.style import WIDTH_PX

DPI = 100
GREY = "#555555"


class Sheet:
    """A figure of WIDTH_PX x height pixels."""

    def __init__(self, height: int) -> None:
        self.height = height
        self.figure = Figure(figsize=(WIDTH_PX / DPI, height / DPI), dpi=DPI)

    def text(self, x: float, y: float, text: str, **how: Any) -> None:
        """Write a text at this point."""
        self.figure.text(x / WIDTH_PX, 1 - y / self.height, text, **how)

    def axes(self, x: tuple[float, float], y: tuple[float, float], grid: Literal["x", "y"]) -> Axes:
        """Axes from x[0] to x[1] and from y[0] down to y[1], with a grid across "x" or "y"."""
        left, bottom = x[0] / WIDTH_PX, (self.height - y[1]) / self.height
        axes = self.figure.add_axes(
            (left, bottom, (x[1] - x[0]) / WIDTH_PX, (y[1] - y[0]) / self.height)
        )
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(axis=grid, color="#E4E4E4", lw=0.6)
        axes.set_axisbelow(True)
        return axes
