# SPDX-License-Identifier: GPL-2.0-or-later
"""How every picture of matplotlib is made and written, whatever its labels hold."""

import warnings
from collections.abc import Callable
from pathlib import Path

import matplotlib
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure


def write(make: Callable[[], Figure], path: Path, *, hatch_linewidth: float = 1.0) -> Path:
    """Make the figure and write it as PNG; hatch_linewidth in points."""
    # Labels are from strangers: a dollar in one begins no formula.
    with matplotlib.rc_context(
        {"text.parse_math": False, "font.size": 9, "hatch.linewidth": hatch_linewidth}
    ):
        figure = make()
        FigureCanvasAgg(figure)
        with warnings.catch_warnings():
            # A label in a script that the font lacks shows as boxes; that is no news for stderr.
            warnings.filterwarnings("ignore", message="Glyph .* missing")
            figure.savefig(path, format="png")
    return path
