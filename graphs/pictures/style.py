# SPDX-License-Identifier: GPL-2.0-or-later
"""Colours and sizes that all pictures share."""

import warnings
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from matplotlib import get_data_path
from matplotlib.font_manager import get_font
from matplotlib.ft2font import FT2Font, LoadFlags

from analysis.reading.words import safe_line, short_label

# Okabe and Ito's palette for colour-blind readers; without its yellow, which is too pale for
# a line on white.
OKABE_ITO = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
OPEN = "#D55E00"  # a silence that no line ended
SHADE = "#B0B0B0"  # times at which a subject stalled
WIDTH_PX = 1100  # fits into a mail and a browser window
# (colour, matplotlib's marker): they also differ in shape, and in the word beside them.
VERDICTS = {
    "regressed": ("#D55E00", "^"),
    "improved": ("#009E73", "v"),
    "equivalent": ("#0072B2", "s"),
    "undecided": ("#767676", "o"),
    "trades": ("#CC79A7", "D"),
    "idle": ("#767676", "."),
}


@dataclass(frozen=True)
class Look:
    """How a cause is drawn: its colour, the colour of edge and hatch, matplotlib's hatch."""

    colour: str
    ink: str
    hatch: str = ""


# Colours by kind: disk blue, crypt orange, reclaim vermilion, compaction purple, CPU green.
CAUSES = {
    "swap_in": Look("#0072B2", "#FFFFFF"),
    "file_read": Look("#56B4E9", "#FFFFFF"),
    "file_write": Look("#56B4E9", "#0072B2", "///"),
    "dm_crypt": Look("#E69F00", "#FFFFFF"),
    "reclaim_scan": Look("#D55E00", "#FFFFFF"),
    "reclaim_swapout": Look("#D55E00", "#FFFFFF", "|||"),
    "reclaim_writeback": Look("#D55E00", "#FFFFFF", "///"),
    "reclaim_noprogress": Look("#D55E00", "#FFFFFF", "xxx"),
    "reclaim_kswapd": Look("#D55E00", "#FFFFFF", "..."),
    "compaction": Look("#CC79A7", "#FFFFFF"),
    "cpu_starved": Look("#009E73", "#FFFFFF"),
    "cpu_running": Look("#009E73", "#FFFFFF", "\\\\\\"),
    "lock": Look("#000000", "#FFFFFF"),
    "stopped": Look("#000000", "#FFFFFF", "---"),
    "other": Look("#8C8C8C", "#FFFFFF"),
    "unexplained": Look("#EDEDED", "#8C8C8C", "///"),
}


def line_style(index: int) -> tuple[str, int]:
    """(colour, dash 1 to 4) of the index-th kernel: beyond seven kernels the dashes differ."""
    return OKABE_ITO[index % len(OKABE_ITO)], 1 + index // len(OKABE_ITO) % 4


def _font() -> FT2Font:
    """DejaVu Sans, from matplotlib's own copy.

    Looked up for each use: get_font caches it, but not across a fork, which shares its open file.
    """
    return get_font(str(Path(get_data_path(), "fonts", "ttf", "DejaVuSans.ttf")))


def text_width(text: str, points: float, dpi: int) -> float:
    """The width of a text in pixels, at most (hinting may widen it by 6 %)."""
    font = _font()
    font.set_size(points, dpi)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a missing glyph is as wide as its box
        font.set_text(text, 0.0, flags=LoadFlags.NO_HINTING)
    return 1.06 * float(font.get_width_height()[0]) / 64


def fitted(text: object, pixels: float, points: float, dpi: int) -> str:
    """The text made plain, and cut to at most `pixels` pixels; points: the font size."""
    return _fitted(text, pixels, points, dpi, safe_line)


def fitted_label(label: str, pixels: float, points: float, dpi: int) -> str:
    """A variant's label in at most `pixels` pixels, without its middle (short_label)."""
    return _fitted(label, pixels, points, dpi, short_label)


def _fitted(
    text: object, pixels: float, points: float, dpi: int, shorten: Callable[[str, int], str]
) -> str:
    whole = safe_line(text)
    if text_width(whole, points, dpi) <= pixels:
        return whole
    lengths = range(3, max(4, len(whole)))
    longest = bisect_right(
        lengths, pixels, key=lambda limit: text_width(shorten(whole, limit), points, dpi)
    )
    return shorten(whole, lengths[max(0, longest - 1)])
