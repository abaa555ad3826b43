# SPDX-License-Identifier: GPL-2.0-or-later
"""The sentence on slow keys: it is there where the verdict does not say the same."""

from pathlib import Path

import pytest

from analysis.reading.load import load_campaign
from analysis.verdicts.compare import compare
from analysis.verdicts.slow_keys import sentence
from tests.analysis.test_keys import LINES, log
from tests.analysis.test_keys_beside_verdicts import FAST
from tests.support.verdicts import cut_at_the_limit, stalling_run

TERMINALS, WINDOWS = "keys-0.1", "window-keys-0.1"
MORE = (
    "ore keys were slow in every run: 75 % of those typed at terminals took 0.1 s or more (a: 9 %)."
)


@pytest.mark.parametrize(
    ("verdict", "begin"),
    [
        ("improved", "Yet m"),
        ("trades", "Yet m"),
        ("undecided", "M"),
        ("equivalent", "M"),
        ("regressed", None),
        ("idle", None),
    ],
)
def test_more_slow_keys_are_news_unless_it_regressed(verdict: str, begin: str | None) -> None:
    text = sentence(verdict, "a", {TERMINALS: [70.0, 80.0]}, {TERMINALS: [8.0, 10.0]})
    assert text == ("" if begin is None else begin + MORE)


def test_fewer_slow_keys_are_news_unless_it_improved() -> None:
    row = {TERMINALS: [0.2, 0.4]}, {TERMINALS: [8.0, 10.0]}
    words = "fewer keys were slow in every run: less than 1 % of those typed at terminals"
    assert sentence("regressed", "a", *row).startswith(f"Yet {words}")
    assert sentence("undecided", "a", *row).startswith(words.capitalize())
    assert not sentence("improved", "a", *row) and not sentence("trades", "a", *row)


@pytest.mark.parametrize(
    ("shares", "of_base"),
    [
        ([10.0, 80.0], [8.0, 10.0]),  # one run has no more than one of the baseline's
        ([80.0], [8.0, 10.0]),  # one run is a sign
        ([70.0, 80.0], [8.0]),
        ([], []),
    ],
)
def test_what_is_not_in_every_run_is_not_said(shares: list[float], of_base: list[float]) -> None:
    assert not sentence("improved", "a", {TERMINALS: shares}, {TERMINALS: of_base})
    assert not sentence("improved", "a", {}, {})


def test_windows_and_terminals_have_a_sentence_each() -> None:
    text = sentence(
        "undecided",
        "a",
        {TERMINALS: [70.0, 80.0], WINDOWS: [1.0, 3.0]},
        {TERMINALS: [8.0, 10.0], WINDOWS: [60.0, 62.0]},
    )
    assert text == f"M{MORE} " + (
        "Fewer keys were slow in every run: 2 % of those typed in windows took 0.1 s or more "
        "(a: 61 %)."
    )


@pytest.mark.parametrize("cut", [False, True])
def test_a_summary_says_it_also_of_runs_up_to_their_limit(tmp_path: Path, cut: bool) -> None:
    """6.1 stalls less, and its keys are slow: five of six; 7.2's come at once."""
    for label, stalled, lines in (("7.2", 50.0, FAST), ("6.1", 5.0, LINES)):
        for number in range(1, 6):
            path = stalling_run(tmp_path / label / str(number), stalled + number / 10)
            (path / "latency-keys.log").write_text(log(lines, 60.0))
        if cut:
            cut_at_the_limit(tmp_path / label)
    compared = compare(load_campaign(tmp_path), baseline="7.2")
    text = compared.answers["6.1"].text
    assert (
        "ore keys were slow in every run: 83 % of those typed at terminals took 0.1 s or more "
        "(7.2: 0 %)." in text
    )
    assert "slow" not in compared.answers["7.2"].text
    assert compared.primary["6.1"].verdict == "improved" or cut
