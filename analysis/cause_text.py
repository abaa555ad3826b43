# SPDX-License-Identifier: GPL-2.0-or-later
"""A stall's card and a run's sums of causes as lines of plain text."""

from textwrap import wrap

from analysis.cause_names import BY_KEY, UNEXPLAINED, Card, RunCauses
from analysis.words import plural

WIDTH = 100
BAR = 10  # characters of a whole
SMALLEST = 0.005  # a share below it is not shown, but for what is unexplained
MOST_STACKS = 2
LONGEST_STACK = 8  # functions


def totals_lines(found: RunCauses) -> list[str]:
    """A run's stalled seconds by cause, the largest first, a line each."""
    total = found.total
    if total <= 0:
        return ["  no gitk was silent for so long"]
    return [
        f"  {seconds / total * 100:3.0f} % {seconds:8.1f} s  {BY_KEY[key].words}"
        for key, seconds in found.seconds.items()
        if key == UNEXPLAINED or seconds / total >= SMALLEST
    ]


def card_title(card: Card) -> str:
    """'gitk-4 was silent for 25.3 s (from 154.4 s, to 179.7 s)'."""
    stall = card.stall
    until = "and no line ended it" if stall.open else f"to {stall.end:.1f} s"
    return f"{stall.stream} was silent for {stall.length:.1f} s (from {stall.begin:.1f} s, {until})"


def card_lines(card: Card, width: int = WIDTH) -> list[str]:
    """One card."""
    lines = [card_title(card)]
    total = sum(card.seconds.values()) or 1.0
    for key, seconds in card.seconds.items():
        share = seconds / total
        if key != UNEXPLAINED and share < SMALLEST:
            continue
        bar = "#" * round(share * BAR)
        lines.append(f"  {share * 100:3.0f} % {seconds:8.2f} s {bar:<{BAR}}  {BY_KEY[key].words}")
        who = [(words, spent) for words, spent in card.who.get(key, []) if spent >= 0.05]
        if who and key != UNEXPLAINED:
            text = ", ".join(f"{words} {spent:.1f} s" for words, spent in who)
            lines += _wrapped(text, width, "          ")
    if card.machine:
        lines += _wrapped(", ".join(card.machine), width, "  ")
    if not card.samples:
        lines.append("  no look at a stack: the clocks alone tell")
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
