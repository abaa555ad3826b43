# SPDX-License-Identifier: GPL-2.0-or-later
"""Simulated searches: the same seed is the same search, and a plain step is found."""

from pathlib import Path

import pytest

from benchmarks.bisect.__main__ import HEAD, cells, main, settings
from benchmarks.bisect.simulate import Setting, simulate

DOCS = Path(__file__).resolve().parents[2] / "docs"


def test_a_plain_step_is_found_and_the_seed_decides() -> None:
    setting = Setting(2.0, 0.06, commits=256)
    tally = simulate(setting, 10, 3)
    assert tally == simulate(setting, 10, 3)
    assert tally.right >= 9 and tally.right + tally.wrong + tally.unsure == 10
    assert max(tally.kernels) < 20 < min(tally.runs) + 10


def test_a_step_among_commits_that_do_not_build_is_a_range_or_none() -> None:
    tally = simulate(Setting(2.0, 0.06, commits=40, broken=3, longest=5), 10, 1)
    assert tally.right >= 9


def test_offsets_as_large_as_the_step_end_unsure() -> None:
    tally = simulate(Setting(1.1, 0.06, offset=0.1, commits=64), 5, 1)
    assert tally.unsure >= 3


def test_a_row_has_a_cell_for_each_column(capsys: pytest.CaptureFixture[str]) -> None:
    assert len(settings()) == 28
    row = cells(simulate(Setting(2.0, 0.06, commits=64), 2, 1))
    assert len(HEAD) == 4 + len(row)
    with pytest.raises(SystemExit):
        main(["--help"])
    assert "1,000 simulated searches" in capsys.readouterr().out


def test_the_table_that_is_kept_is_whole_and_the_guide_quotes_it() -> None:
    """Each row of the benchmark, none wrong in more than 5 %; the guide quotes some."""
    table = (DOCS / "example" / "bisect-simulation.txt").read_text()
    assert table.startswith(f"| {' | '.join(HEAD)} |\n")
    rows = [[cell.strip() for cell in row.strip("|").split("|")] for row in table.splitlines()[2:]]
    assert len(rows) == len(settings())
    assert all(float(row[HEAD.index("wrong")].rstrip(" %")) <= 5 for row in rows)
    guide = (DOCS / "guides" / "culprit.md").read_text()
    assert f"[all {len(rows)} rows](../example/bisect-simulation.txt)" in guide
    kept = [[row[0], *row[1:3], *row[4:7], *row[8:]] for row in rows]
    _, _, quoted_table = guide.partition("| kernels: mean, 9 of 10 |\n")
    quoted = quoted_table.split("\n\n")[0].splitlines()[1:]
    assert len(quoted) >= 3
    for row in quoted:
        cells_of_row = [cell.strip() for cell in row.strip("|").split("|")]
        assert [cells_of_row[0].split(",")[0], *cells_of_row[1:]] in kept, row
