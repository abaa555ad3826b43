# SPDX-License-Identifier: GPL-2.0-or-later
"""Why one run stalled, as lines of the summary."""

import re
from collections.abc import Iterator

from analysis.cause_names import UNEXPLAINED, RunCauses
from analysis.cause_table import LEAST, OTHER, SHORT, SMALL
from analysis.causes import card_lines
from analysis.load import Run
from analysis.words import WIDTH, entry, paragraph, plain, plural

NO_EVIDENCE = "no evidence was recorded: why it stalled is not known"


def line(found: RunCauses) -> str:
    """'dm-crypt 12.1 s (44 %), swap-in 9.0 s (33 %), unexplained 0.2 s (1 %)': largest first."""
    total = found.total
    if not total:
        return "no stall"
    keys = [key for key in found.seconds if key != UNEXPLAINED]
    large = sorted(
        (key for key in keys if found.seconds[key] > SMALL * total),
        key=lambda key: -found.seconds[key],
    )
    parts = [(SHORT[key], found.seconds[key]) for key in large]
    rest = sum(found.seconds[key] for key in keys if key not in large)
    parts += [(OTHER, rest)] if rest >= LEAST else []
    parts.append((SHORT[UNEXPLAINED], found.seconds.get(UNEXPLAINED, 0.0)))
    return ", ".join(f"{name} {value:.1f} s ({100 * value / total:.0f} %)" for name, value in parts)


def run_lines(run: Run, why: RunCauses | None) -> Iterator[str]:
    """The run's entry of the summary, and what its evidence lacks; None: it has no evidence."""
    if run.gitks:
        text = NO_EVIDENCE if why is None else line(why)
        # A figure stays with its unit: textwrap knows no break at a no-break space.
        lines = entry("causes", re.sub(r"(?<=\d) (?=[s%])", "\u00a0", text))
        yield from (each.replace("\u00a0", " ") for each in lines)
    if why and why.notes:
        yield from entry("", f"({plain(' '.join(why.notes), 600)})")


def worst_card(why: RunCauses | None) -> Iterator[str]:
    """The card of the run's longest stall, under a heading."""
    if why is None or not why.cards:
        return
    title = "Why the worst stall lasted"
    yield from ["", title, "-" * len(title), *card_lines(why.cards[0], WIDTH)]
    if len(why.cards) > 1:
        more = plural(len(why.cards) - 1, "more stall")
        yield from paragraph(f"({more}: python3 -m analysis.causes DIR --worst {len(why.cards)})")
