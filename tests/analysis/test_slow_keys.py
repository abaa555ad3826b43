# SPDX-License-Identifier: GPL-2.0-or-later
"""The sentence on slow keys: it is there where the verdict does not say the same."""

from pathlib import Path

import pytest

from analysis.reading.load import load_campaign
from analysis.verdicts.compare import compare
from analysis.verdicts.slow_keys import slow_keys_sentence
from tests.analysis.test_keys import LINES, log
from tests.analysis.test_keys_beside_verdicts import FAST
from tests.support.verdicts import cut_at_the_limit, stalling_run

TERMINALS, WINDOWS = "keys-0.1", "window-keys-0.1"
MANY, FEW = [70.0, 80.0, 74.0, 76.0], [8.0, 10.0, 9.0, 9.0]
LARGER = (
    "n each of its runs a larger share of keys was slow than in any of a's: 75 % of those typed "
    "at terminals took 0.1 s or more, against 9 %."
)


@pytest.mark.parametrize(
    ("verdict", "begin"),
    [
        ("improved", "Yet i"),
        ("trades", "Yet i"),
        ("undecided", "I"),
        ("equivalent", "I"),
        ("regressed", None),
        ("idle", None),
    ],
)
def test_more_slow_keys_are_named_unless_it_regressed(verdict: str, begin: str | None) -> None:
    text = slow_keys_sentence(verdict, "a", {TERMINALS: MANY}, {TERMINALS: FEW})
    assert text == ("" if begin is None else begin + LARGER)


def test_fewer_slow_keys_are_named_unless_it_improved() -> None:
    shares = {TERMINALS: [0.2, 0.4, 0.3, 0.0]}, {TERMINALS: FEW}
    words = "n each of its runs a smaller share of keys was slow than in any of a's: less than 1 %"
    assert slow_keys_sentence("regressed", "a", *shares).startswith(f"Yet i{words}")
    assert slow_keys_sentence("undecided", "a", *shares).startswith(f"I{words}")
    assert not slow_keys_sentence("improved", "a", *shares)
    assert not slow_keys_sentence("trades", "a", *shares)


@pytest.mark.parametrize(
    ("shares", "base_shares"),
    [
        ([10.0, *MANY], FEW),  # one run has no larger share than one of the baseline's
        (MANY[:3], FEW),
        (MANY, FEW[:3]),
        ([12.0, 13.0, 12.0, 13.0], FEW),  # 3.5 of 100 keys: one key in a short run
        ([], []),
    ],
)
def test_a_difference_that_may_be_chance_is_not_named(
    shares: list[float], base_shares: list[float]
) -> None:
    assert not slow_keys_sentence("improved", "a", {TERMINALS: shares}, {TERMINALS: base_shares})
    assert not slow_keys_sentence("improved", "a", {}, {})


def test_windows_and_terminals_have_a_sentence_each() -> None:
    text = slow_keys_sentence(
        "undecided",
        "a",
        {TERMINALS: MANY, WINDOWS: [1.0, 3.0, 2.0, 2.0]},
        {TERMINALS: FEW, WINDOWS: [60.0, 62.0, 61.0, 61.0]},
    )
    assert text == f"I{LARGER} " + (
        "In each of its runs a smaller share of keys was slow than in any of a's: 2 % of those "
        "typed in windows took 0.1 s or more, against 61 %."
    )


def write(folder: Path, label: str, stalled: float, lines: list[tuple[float, str]]) -> None:
    """Five runs of a variant."""
    for number in range(1, 6):
        path = stalling_run(folder / label / str(number), stalled + number / 10)
        (path / "latency-keys.log").write_text(log(lines, 60.0))


def answer(folder: Path) -> str:
    return compare(load_campaign(folder), baseline="7.2").answers["6.1"].text


@pytest.mark.parametrize("cut", [False, True])
def test_a_comparison_names_them_also_of_runs_up_to_their_limit(tmp_path: Path, cut: bool) -> None:
    """6.1 stalls less, and five of its six keys are slow; 7.2's come at once."""
    write(tmp_path, "7.2", 50.0, FAST)
    write(tmp_path, "6.1", 5.0, LINES)
    if cut:
        for label in ("7.2", "6.1"):
            cut_at_the_limit(tmp_path / label)
    assert (
        "n each of its runs a larger share of keys was slow than in any of 7.2's: 83 % of those "
        "typed at terminals took 0.1 s or more, against 0 %." in answer(tmp_path)
    )


@pytest.mark.parametrize("label", ["6.1", "7.2"])
def test_nothing_is_said_of_each_run_if_one_failed_or_has_no_keys(
    tmp_path: Path, label: str
) -> None:
    write(tmp_path, "7.2", 50.0, FAST)
    write(tmp_path, "6.1", 5.0, LINES)
    assert "each of its runs" in answer(tmp_path)
    keys = tmp_path / label / "5" / "latency-keys.log"
    keys.unlink()
    assert "each of its runs" not in answer(tmp_path)
    stalling_run(tmp_path / label / "5", "hung")
    assert "each of its runs" not in answer(tmp_path)
