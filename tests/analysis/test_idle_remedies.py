# SPDX-License-Identifier: GPL-2.0-or-later
"""A remedy that never acted: the texts name how much memory was free, and the pressure."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.figures import counters
from analysis.reading.load import load_campaign
from analysis.text import compare_text, summary_files
from benchmarks.synthetic_results.make import table
from tests.analysis.test_remedies import DONE, LOG, SETTINGS, campaign, run, untreated
from tests.support.verdicts import stalling_run

Column = list[float | int | None]


def write_pressure(folder: Path, elapsed: Column, waited_s: list[float]) -> None:
    zeros: Column = [0] * len(elapsed)
    full: Column = [int(1e6 * waited) for waited in waited_s]
    columns: dict[str, Column] = {"elapsed_s": elapsed, "late_s": zeros, "memory_some_us": zeros}
    (folder / "psi.tsv").write_text(table({**columns, "memory_full_us": full}))


def write_memory(folder: Path, available: Column, swap_free: Column) -> None:
    elapsed: Column = [float(second) for second in range(len(available))]
    columns: dict[str, Column] = {
        "elapsed_s": elapsed,
        "late_s": [0] * len(elapsed),
        "MemTotal": [200_000] * len(elapsed),
        "MemFree": available,
        "MemAvailable": available,
        "SwapTotal": [1_000] * len(elapsed),
        "SwapFree": swap_free,
    }
    (folder / "meminfo.tsv").write_text(table(columns))


def pressure(tmp_path: Path, elapsed: Column, waited_s: list[float]) -> float | None:
    folder = stalling_run(tmp_path / "v" / "1", 5.0)
    write_pressure(folder, elapsed, waited_s)
    (loaded,) = load_campaign(tmp_path).runs
    return counters.worst_pressure(loaded)


def test_the_worst_ten_seconds_are_those_with_most_waiting(tmp_path: Path) -> None:
    """0.1 s a second, from 20 to 28 s one second a second: 8.2 of the ten seconds from 18 s."""
    elapsed: Column = [float(second) for second in range(61)]
    speeds = [1.0 if 20 <= second < 28 else 0.1 for second in range(60)]
    waited = [sum(speeds[:second]) for second in range(61)]
    assert pressure(tmp_path, elapsed, waited) == pytest.approx(82)


def test_a_shorter_run_is_one_span(tmp_path: Path) -> None:
    assert pressure(tmp_path, [0.0, 1.0, 4.0], [0.0, 0.9, 1.0]) == pytest.approx(25)


@pytest.mark.parametrize("elapsed", [[0.0], [1.0, 1.0]])
def test_of_one_moment_nothing_is_known(tmp_path: Path, elapsed: Column) -> None:
    assert pressure(tmp_path, elapsed, [0.0] * len(elapsed)) is None


@given(
    st.lists(
        st.tuples(st.floats(0.05, 30), st.floats(0, 1)),
        min_size=1,
        max_size=40,
    )
)
def test_a_share_is_never_outside_0_to_100(spans: list[tuple[float, float]]) -> None:
    elapsed = np.cumsum([0.0, *(length for length, _ in spans)])
    waited = np.cumsum([0.0, *(1e6 * length * share for length, share in spans)])
    fake = SimpleNamespace(column=lambda *_: (elapsed, waited))
    share = counters.worst_pressure(fake)  # type: ignore[arg-type]
    assert share is not None and 0 <= share <= 100
    highest = max(share for _, share in spans)
    assert share <= 100 * highest + 1e-6


def test_texts_name_the_reasons_of_an_idle_remedy(tmp_path: Path) -> None:
    untreated(tmp_path, 2)
    for n in (1, 2):
        folder = tmp_path / "treated" / str(n)
        run(folder, 40.0 + n, {"gitk-1": (45.0 + n, DONE)}, log=SETTINGS)
        write_memory(folder, [100_000, 8_000 * n, 50_000], [1_000, 900, 600 + n])
        write_pressure(folder, [0.0, 10.0, 20.0], [0.0, 4.1, 5.0])
    compared = campaign(tmp_path, "treated")
    words = (
        "treated never acted: at least 4 % of the memory were available, at least 60 % of the "
        "swap were free, in the worst 10 s all programs waited for memory for 41 % of the time."
    )
    for text in (compare_text.text(compared), summary_files.summary(compared.campaign, compared)):
        assert f" {words} " in " ".join(text.split())


def test_without_tables_and_of_a_remedy_that_acted_there_are_no_reasons(tmp_path: Path) -> None:
    untreated(tmp_path, 2)
    run(tmp_path / "treated" / "1", 41.0, {"gitk-1": (46.0, DONE)})
    text = " ".join(compare_text.text(campaign(tmp_path, "treated")).split())
    assert " treated never acted. " in text
    run(tmp_path / "treated" / "1", 41.0, {"gitk-1": (46.0, DONE)}, log=LOG)
    text = compare_text.text(campaign(tmp_path, "treated"))
    assert "never acted" not in text
