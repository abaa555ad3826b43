# SPDX-License-Identifier: GPL-2.0-or-later
"""Figures that a workload has of trace.tsv: sums that are known, and moments that are not there."""

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.figures.workload_tables import of_run
from analysis.reading.evidence import Evidence
from analysis.reading.load import load_campaign
from analysis.reading.recorded import recorded
from benchmarks.synthetic_results.make import table
from contract.workload import FigureTable, Recorded, TableRow
from tests.support.workloads import DIRTY, figures_of, workload_run

T0 = 12.5
STAMPS: list[float | int | None] = [0.0, 0.25, 0.5, 0.75, 1.0]
TRACE = table(
    {
        "elapsed_s": STAMPS,
        "late_s": [0.0] * 5,
        "throttled_writeback_n": [7, 8, 10, 10, 15],
        "throttled_isolated_n": [0, 0, 1, 1, 1],
        "kswapd_throttled_writeback_n": [0, 4, 4, 4, 6],
        "throttled_writeback_us": [0, 1000, 9000, 9000, 20000],
        "unread_n": [None] * 5,
    }
)
MOMENTS = {"in": T0 + 0.3, "out": T0 + 0.6, "late": T0 + 60}


def value(tmp_path: Path, one: Recorded, told: dict[str, float] = MOMENTS) -> float | None:
    (tmp_path / "trace.tsv").write_text(TRACE)
    return recorded(Evidence(tmp_path), [one], told, T0).get(one.key)


@pytest.mark.parametrize(
    ("asked", "known"),
    [
        (Recorded("k", ("throttled_*_n",)), 9),
        (Recorded("k", ("throttled_*_n", "kswapd_throttled_*_n")), 15),
        # The row before 0.3 s, and the one after 0.6 s.
        (Recorded("k", ("throttled_*_n",), "in", "out"), 3),
        (Recorded("k", ("throttled_*_n",), "", "out"), 4),
        (Recorded("k", ("throttled_*_n",), "out"), 5),
        (Recorded("k", ("throttled_*_us",), divisor=1000), 20),
        (Recorded("k", ("throttled_*_n",), share_of=("*throttled_*_n",)), 60),
        (Recorded("k", ("congestion_wait_n", "throttled_*_n")), 9),
        (Recorded("k", ("congestion_wait_n",)), None),
        (Recorded("k", ("unread_n",)), None),
        (Recorded("k", ("unread_n", "throttled_*_n")), None),
        (Recorded("k", ("throttled_*_n",), "never"), None),
        (Recorded("k", ("throttled_*_n",), "late"), None),
        (Recorded("k", ("throttled_*_n",), "in", "late"), None),
        (Recorded("k", ("throttled_*_n",), "in", "in", share_of=("throttled_isolated_n",)), 300),
        (Recorded("k", ("throttled_*_n",), "out", share_of=("throttled_isolated_n",)), None),
    ],
)
def test_by_how_much_columns_grew(tmp_path: Path, asked: Recorded, known: float | None) -> None:
    assert value(tmp_path, asked) == known


def test_without_a_trace_or_a_begin_nothing_is_known(tmp_path: Path) -> None:
    asked = [Recorded("k", ("throttled_*_n",))]
    assert recorded(Evidence(tmp_path), asked, {}, T0) == {}
    (tmp_path / "trace.tsv").write_text(TRACE)
    assert recorded(Evidence(tmp_path), asked, {}, None) == {}


def test_a_single_row_is_no_growth(tmp_path: Path) -> None:
    row = "".join(TRACE.splitlines(keepends=True)[:2])
    (tmp_path / "trace.tsv").write_text(row)
    asked = [Recorded("k", ("throttled_*_n",)), Recorded("l", ("throttled_*_n",), "in", "in")]
    assert recorded(Evidence(tmp_path), asked, {"in": T0}, T0) == {}


@given(st.lists(st.integers(0, 50), min_size=2, max_size=20), st.integers(0, 20))
def test_spans_one_behind_the_other_add_up(
    tmp_path_factory: pytest.TempPathFactory, steps: list[int], cut: int
) -> None:
    """A moment on a row divides what is there into two."""
    folder = tmp_path_factory.getbasetemp()
    sums = [sum(steps[: n + 1]) for n in range(len(steps))]
    rows: list[float | int | None] = [n / 4 for n in range(len(steps))]
    (folder / "trace.tsv").write_text(table({"elapsed_s": rows, "x": [*sums]}))
    told = {"cut": T0 + min(cut, len(steps) - 1) / 4}
    parts = [Recorded("a", ("x",), "", "cut"), Recorded("b", ("x",), "cut"), Recorded("c", ("x",))]
    found = recorded(Evidence(folder), parts, told, T0)
    assert found["a"] + found["b"] == found["c"] == sums[-1] - sums[0]


def test_they_are_cells_of_tables(tmp_path: Path) -> None:
    asked = Recorded("stalls", ("throttled_*_n",), "", "moment")
    shown = FigureTable("t", ("stalls", "inside"), (TableRow("", ("stalls", "time-inside")),))
    told = replace(DIRTY, recorded=(asked,), tables=(shown,)).as_meta()
    place = workload_run(
        tmp_path / "k" / "1", figures_of(40.0) | {"moment": T0 + 0.5}, workload=told
    )
    (place / "trace.tsv").write_text(TRACE)
    (run,) = load_campaign(place).runs
    assert run.workload.recorded == (asked,) and not run.warnings
    assert of_run(run, run.workload.tables) == {"stalls": 4, "time-inside": 40.0}
