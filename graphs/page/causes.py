# SPDX-License-Identifier: GPL-2.0-or-later
"""The stall causes on the page: a chart, a table, and the cards of the worst stalls."""

from dataclasses import dataclass
from typing import Any

from analysis.figures.metrics import added_up
from analysis.reading.words import plural, safe_line, seconds
from analysis.text import causes as causes_text
from analysis.text.causes import card_lines
from analysis.verdicts.cause_table import SHORT
from analysis.verdicts.choice import LISTED_RUNS
from analysis.verdicts.compared import Compared
from graphs.pictures.style import CAUSES

CARDS = 3  # cards per run; 1 if there are more than LISTED_RUNS runs
COLUMNS = 100


@dataclass(frozen=True)
class RunCards:
    """The cards of a run's worst stalls; `line`: its seconds per cause, as text."""

    index: int  # place among the campaign's runs
    name: str
    line: str
    cards: list[str]
    more: str  # a phrase about stalls without a card here


def causes_chart(compared: Compared) -> dict[str, Any] | None:
    """The shown causes with their colours, and each variant's seconds; None if there are none."""
    table = compared.causes
    if not table.samples or table.no_stall:
        return None
    return {
        "causes": [
            {
                "name": SHORT[key],
                "colour": CAUSES[key].colour,
                "ink": CAUSES[key].ink,
                "shape": CAUSES[key].hatch[:1],
                "seconds": [_rounded(table.mean(key, variant)) for variant in compared.variants],
            }
            for key in table.shown
        ],
        "totals": [_rounded(table.total[variant]) for variant in compared.variants],
        "words": [causes_text.total_words(table, variant) for variant in compared.variants],
    }


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 2)


def run_cards(compared: Compared) -> list[RunCards]:
    """The cards of each run with evidence, variant by variant."""
    runs = compared.campaign.runs
    most = CARDS if len(runs) <= LISTED_RUNS else 1
    places = {variant: place for place, variant in enumerate(compared.variants)}
    listed, words = [], added_up(compared.workload)
    for index, run in sorted(
        enumerate(runs), key=lambda entry: (places[entry[1].variant], entry[0])
    ):
        why = compared.causes.of(run)
        if why is None:
            continue
        name = (
            f"{compared.labels[run.variant]}, run {run.number}: {seconds(why.total)} of stalls"
            f"{words and f', {words}'}"
        )
        cards = ["\n".join(map(_printable, card_lines(card, COLUMNS))) for card in why.cards[:most]]
        left = len(why.cards) + why.without_card - len(cards)
        more = f"and {plural(left, 'shorter stall')}" if left else ""
        listed.append(RunCards(index, safe_line(name), causes_text.in_a_line(why), cards, more))
    return listed


def _printable(line: str) -> str:
    """The line with its blanks kept, and unprintable characters replaced."""
    return "".join(char if char.isprintable() else "?" for char in line)
