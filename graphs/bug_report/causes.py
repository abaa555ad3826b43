# SPDX-License-Identifier: GPL-2.0-or-later
"""The causes in a bug report, 75 columns wide: their table, and the card of the worst stall."""

from collections.abc import Callable, Iterator
from dataclasses import replace

from analysis.reading.words import safe_line
from analysis.stall_causes.causes import Card
from analysis.text import causes as causes_text
from analysis.text.causes import card_lines
from analysis.text.layout import WIDTH
from analysis.verdicts.compared import Compared


def section(compared: Compared, shown: list[str], clean: Callable[[str], str]) -> Iterator[str]:
    """The lines of the section, none without evidence; clean: redacts secrets in a text."""
    table = compared.causes
    of_shown = replace(table, variants=shown or compared.variants)
    yield from causes_text.section(of_shown, compared.workload, WIDTH)
    cards = [
        (why.cards[0], run)
        for run in compared.campaign.runs
        if (why := table.of(run)) is not None and why.cards
    ]
    if not cards:
        return
    card, run = max(cards, key=lambda pair: pair[0].stall.length)
    label = safe_line(compared.labels.get(run.variant, run.variant), 50)
    yield from ["", f"The worst stall ({label}, run {run.number}):"]
    yield from card_lines(_clean(card, clean), WIDTH)


def _clean(card: Card, clean: Callable[[str], str]) -> Card:
    """The card with redacted names of programs."""
    who = {
        cause: [(safe_line(clean(words), 100), spent) for words, spent in entries]
        for cause, entries in card.who.items()
    }
    stall = replace(card.stall, stream=safe_line(clean(card.stall.stream), 30))
    return replace(card, stall=stall, who=who)
