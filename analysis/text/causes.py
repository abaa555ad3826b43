# SPDX-License-Identifier: GPL-2.0-or-later
"""Stall causes as text: a stall's card, a run's totals, and the table of a campaign."""

import re
from collections.abc import Iterator
from textwrap import wrap

from analysis.figures.metrics import added_up
from analysis.reading.load import Run
from analysis.reading.streams import STALL
from analysis.reading.words import plural, safe_line, short_label
from analysis.stall_causes.causes import UNEXPLAINED, Card, RunCauses, words
from analysis.text.layout import WIDTH, blocks, entry, paragraph
from analysis.text.verdict_table import runs_cell
from analysis.verdicts.cause_table import LEAST, OTHER, SHORT, SMALL, CauseTable
from contract.workload import Description

CARD_WIDTH = 100
BAR = 10  # characters of a bar that stands for 100 %
SMALLEST = 0.005  # smaller shares are not shown, unless they are unexplained
MOST_STACKS = 2  # of a card
LONGEST_STACK = 8  # functions
LABEL = 20  # columns of a variant's name in the table
NO_EVIDENCE = "no evidence was recorded: why it stalled is not known"


def totals_lines(causes: RunCauses, subject: str) -> list[str]:
    """A line for each cause of a run's stalls, its share (%) and its seconds, largest first."""
    total = causes.total
    if total <= 0:
        return [f"  no {subject} was silent for so long"]
    return [
        f"  {seconds / total * 100:3.0f} % {seconds:8.1f} s  {words(key, causes.swap)}"
        for key, seconds in causes.seconds.items()
        if key == UNEXPLAINED or seconds / total >= SMALLEST
    ]


def card_title(card: Card) -> str:
    """The card's first line: 'gitk-4 was silent for 25.3 s (from 154.4 s, to 179.7 s)'."""
    stall = card.stall
    until = "and no line ended it" if stall.open else f"to {stall.end:.1f} s"
    return f"{stall.stream} was silent for {stall.length:.1f} s (from {stall.begin:.1f} s, {until})"


def card_lines(card: Card, width: int = CARD_WIDTH) -> list[str]:
    """The card as lines of at most `width` columns: causes in seconds and %, and sampled stacks."""
    lines = [card_title(card)]
    total = sum(card.seconds.values()) or 1.0
    for key, seconds in card.seconds.items():
        share = seconds / total
        if key != UNEXPLAINED and share < SMALLEST:
            continue
        bar = "#" * round(share * BAR)
        cause = words(key, card.swap)
        lines.append(f"  {share * 100:3.0f} % {seconds:8.2f} s {bar:<{BAR}}  {cause}")
        who = [(name, spent) for name, spent in card.who.get(key, []) if spent >= 0.05]
        if who and key != UNEXPLAINED:
            text = ", ".join(f"{name} {spent:.1f} s" for name, spent in who)
            lines += _wrapped(text, width, "          ")
    if card.machine:
        lines += _wrapped(", ".join(card.machine), width, "  ")
    if not card.samples:
        lines.append("  no stack was recorded; these causes are from the delay clocks alone")
    for stack, count in card.stacks[:MOST_STACKS]:
        names = stack.split(" <- ")
        short = " <- ".join(names[:LONGEST_STACK]) + (" <- …" if len(names) > LONGEST_STACK else "")
        lines += _wrapped(f"{plural(count, 'sample')}: {short}", width, "  ")
    return lines


def _wrapped(text: str, width: int, indent: str) -> list[str]:
    return wrap(
        text,
        max(width, 40),
        initial_indent=indent,
        subsequent_indent=indent + "  ",
        break_on_hyphens=False,
    )


def in_a_line(causes: RunCauses) -> str:
    """A run's stalled seconds by cause, largest first and unexplained last.

    'dm-crypt 12.1 s (44 %), swap-in 9.0 s (33 %), unexplained 0.2 s (1 %)'
    """
    total = causes.total
    if not total:
        return "no stall"
    keys = [key for key in causes.seconds if key != UNEXPLAINED]
    large = sorted(
        (key for key in keys if causes.seconds[key] > SMALL * total),
        key=lambda key: -causes.seconds[key],
    )
    parts = [(SHORT[key], causes.seconds[key]) for key in large]
    rest = sum(causes.seconds[key] for key in keys if key not in large)
    parts += [(OTHER, rest)] if rest >= LEAST else []
    parts.append((SHORT[UNEXPLAINED], causes.seconds.get(UNEXPLAINED, 0.0)))
    return ", ".join(f"{name} {value:.1f} s ({100 * value / total:.0f} %)" for name, value in parts)


def summary_lines(run: Run, why: RunCauses | None) -> Iterator[str]:
    """The summary's entry on causes, and what its evidence lacks; `why`: None without evidence."""
    if run.subjects:
        text = NO_EVIDENCE if why is None else in_a_line(why)
        # Keeps a figure and its unit on one line: textwrap does not break at a no-break space.
        lines = entry("causes", re.sub(r"(?<=\d) (?=[s%])", "\u00a0", text))
        yield from (line.replace("\u00a0", " ") for line in lines)
    if why and why.notes:
        yield from entry("", f"({safe_line(' '.join(why.notes), 600)})")


def worst_card(why: RunCauses | None) -> Iterator[str]:
    """The card of the run's longest stall, with a heading."""
    if why is None or not why.cards:
        return
    title = "Why the worst stall lasted"
    yield from ["", title, "-" * len(title), *card_lines(why.cards[0], WIDTH)]
    more = len(why.cards) - 1 + why.without_card
    if more and why.stored:
        yield from paragraph(f"({plural(more, 'more stall')}; this bundle has no evidence of them)")
    elif more:
        words = plural(more, "more stall")
        yield from paragraph(f"({words}: python3 -m analysis.causes DIR --worst {len(why.cards)})")


def nothing(table: CauseTable, subject: str) -> str:
    """A sentence that no subject stalled in these runs; an empty string if any did."""
    if not table.no_stall:
        return ""
    return f"No {subject} was silent for {STALL:.0f} s or more in the runs {table.which_runs}."


def section(table: CauseTable, workload: Description, width: int) -> Iterator[str]:
    """The table with its title, or a sentence that nothing stalled; no lines without evidence."""
    if words := nothing(table, workload.subject):
        yield from paragraph(words)
    elif table.samples:
        of_all = added_up(workload)
        title = f"Stalled seconds by cause{of_all and f', {of_all}'}"
        yield from wrap(f"{title} (mean of the runs {table.which_runs}):", width)
        yield from table_lines(table, width)


def table_rows(table: CauseTable) -> Iterator[tuple[str, list[str]]]:
    """Rows of a name and a cell for each variant: runs, causes in the order of CAUSES, all causes.

    A cell is the mean stalled seconds of a run, and their share of all in %.
    """
    if not table.samples or table.no_stall:
        return
    unexplained = table.samples[UNEXPLAINED]
    yield "runs", [runs_cell(unexplained[variant]) for variant in table.variants]
    for key in table.shown:
        yield SHORT[key], [_cell(table, key, variant) for variant in table.variants]
    totals = [table.total[variant] for variant in table.variants]
    bounds = [">=" if variant in table.to_limit else "" for variant in table.variants]
    cells = zip(bounds, totals, strict=True)
    yield "all", ["-" if total is None else f"{bound}{total:.1f}" for bound, total in cells]


def _cell(table: CauseTable, key: str, variant: str) -> str:
    """'31.0 (44 %)': seconds and their share; '-' if no run of the variant has evidence."""
    value, total = table.mean(key, variant), table.total[variant]
    if value is None or total is None:
        return "-"
    return f"{value:.1f}" + (f" ({100 * value / total:.0f} %)" if total else "")


def total_words(table: CauseTable, variant: str) -> tuple[str, str]:
    """A variant's total ('≥181.1 s'), and which runs it is of ('(1 of 5 runs)') if not of all.

    ('', '') if no run of it has evidence.
    """
    total = table.total[variant]
    if total is None:
        return "", ""
    least = "≥" if variant in table.to_limit else ""
    sample = table.samples[UNEXPLAINED][variant]
    return f"{least}{total:.1f} s", f"({runs_cell(sample)} runs)" if sample.missing else ""


def table_lines(table: CauseTable, width: int) -> Iterator[str]:
    """The table as text, after an empty line."""
    names, cells = [""], [[short_label(table.labels[variant], LABEL)] for variant in table.variants]
    for name, row in table_rows(table):
        names.append(name)
        for column, cell in zip(cells, row, strict=True):
            column.append(cell)
    if len(names) > 1:
        yield from blocks(names, cells, width)
