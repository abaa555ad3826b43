# SPDX-License-Identifier: GPL-2.0-or-later
"""The proof of the trend: its series are what they are said to be, and so is its table."""

import re
from pathlib import Path

import numpy as np
import pytest

from analysis.trends.trend import INTERVAL
from benchmarks.trend.__main__ import HEAD, cells, settings
from benchmarks.trend.simulate import Setting, draw, simulate

SUITE = Path(__file__).resolve().parents[2]


def test_the_series_have_the_scatter_and_the_changes_that_they_say() -> None:
    setting = Setting(4, 0.14, ((2, 1.5), (3, 1 / 1.5)), runs=20_000)
    logs = [np.log(night) for night in draw(setting, np.random.default_rng(1))]
    assert [one.std() for one in logs] == pytest.approx([0.14] * 4, rel=0.03)
    levels = [float(np.exp(one.mean())) for one in logs]
    assert levels == pytest.approx([500, 500, 750, 500], rel=0.01)
    calm = np.array(draw(Setting(1, 0.14, runs=10_000, calm=0.5), np.random.default_rng(1))[0])
    assert (calm == 0).mean() == pytest.approx(0.5, abs=0.03)


def test_no_change_and_a_clear_one() -> None:
    """Of 60 series without a change: more than 8 with one have a chance of 1 in 1,000 at 5 %."""
    assert simulate(Setting(12, 0.14), 60, 0, 1).false <= 8
    found = simulate(Setting(12, 0.06, ((6, 2.0),)), 40, 40, 2)
    assert found.true == 40 and len(found.nights) >= 36 and set(found.nights) <= {1, 2}
    assert found.holds_one == 0 and sum(found.placed) == len(found.placed)


def test_a_change_that_is_not_there_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """The counter of false alarms counts: a series that changes, of which nobody says so."""
    changing = Setting(12, 0.06, ((6, 2.0),))
    monkeypatch.setattr("benchmarks.trend.simulate.draw", lambda _, rng: draw(changing, rng))
    tally = simulate(Setting(12, 0.06), 20, 0, 3)
    assert (tally.false, tally.true, tally.nights) == (20, 0, [])


def test_the_table_of_the_document_is_whole() -> None:
    """Each row that the benchmark makes, and none that errs in more than 5 %."""
    text = (SUITE / "docs" / "reference" / "trend.md").read_text()
    table = (SUITE / "docs" / "example" / "trend-simulation.txt").read_text()
    assert table.startswith(f"| {' | '.join(HEAD)} |\n")
    rows = table.splitlines()[2:]
    truths = [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]
    expected = [[str(s.nights), f"{100 * s.scatter:g} %", truth] for truth, s in settings()]
    assert [row[:3] for row in truths] == expected
    assert all(float(row[3].rstrip(" %")) <= 5 for row in truths)
    covered = [float(row[8].rstrip(" %")) for row in truths if row[8] and "1.1 times" not in row[2]]
    assert min(covered) >= 95 and f"{INTERVAL:g}" in text
    assert re.search(r"python3 -m benchmarks\.trend", text)
    assert f"[all {len(rows)} rows](../example/trend-simulation.txt)" in text


def test_a_row_without_a_change_has_one_cell() -> None:
    tally = simulate(Setting(3, 0.06), 3, 3, 1)
    assert cells(tally, 3)[1:] == [""] * 6
