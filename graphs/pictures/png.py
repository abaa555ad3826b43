# SPDX-License-Identifier: GPL-2.0-or-later
"""Makes and writes the pictures of matplotlib, whatever their labels contain."""

import warnings
from collections.abc import Callable
from pathlib import Path

import matplotlib
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure


def write(make: Callable[[], Figure], path: Path, *, hatch_linewidth: float = 1.0) -> Path:
    """Make the figure and write it as PNG; hatch_linewidth in points."""
    # Labels are untrusted: a dollar sign must not begin a formula.
    with matplotlib.rc_context(
        {"text.parse_math": False, "font.size": 9, "hatch.linewidth": hatch_linewidth}
    ):
        figure = make()
        FigureCanvasAgg(figure)
        with warnings.catch_warnings():
            # Letters that the font lacks are drawn as boxes, without a warning on stderr.
            warnings.filterwarnings("ignore", message="Glyph .* missing")
            figure.savefig(path, format="png")
    return path
