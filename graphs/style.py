# SPDX-License-Identifier: GPL-2.0-or-later
"""Colours and sizes that all pictures share."""

# Okabe and Ito's palette, which the colour-blind can tell apart; without its yellow, too pale for
# a line on white.
OKABE_ITO = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
OPEN = "#D55E00"  # a silence that no line ended
SHADE = "#B0B0B0"  # the time in which a gitk stood still
WIDTH_PX = 1100  # fits a mail and a browser's window


def line_style(index: int) -> tuple[str, int]:
    """(colour, dash 1 to 4) of the index-th kernel: beyond seven the dashes tell them apart."""
    return OKABE_ITO[index % len(OKABE_ITO)], 1 + index // len(OKABE_ITO) % 4
