# SPDX-License-Identifier: GPL-2.0-or-later
"""Every metric of tiny runs, worked out by hand."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.figures.gaps import expected_wait, quantile_by_time, window_quantiles
from analysis.figures.metrics import (
    BY_KEY,
    METRICS,
    PRIMARY,
    counted,
    failed,
    lost,
    measure,
)
from analysis.reading.load import Run, load_campaign
from benchmarks.synthetic_results.make import line_log, meta, table, write_run

GAPS = st.lists(st.floats(0.001, 1000), min_size=1, max_size=60)


def one_run(folder: Path, state: str = "completed", **files: str) -> Run:
    content: dict[str, str | bytes] = {
        "meta.json": json.dumps(meta("k", parameters={"gitk": 1})),
        # 0.5 s ten times, 4 s, 1 s, and an open gap of 10 s: 20 s in all.
        "latency-gitk-1.log": line_log([(0.5, "x")] * 10 + [(4, "x"), (1, "x")], 10.0),
        **{name.replace("__", "-").replace("_", "."): text for name, text in files.items()},
    }
    write_run(folder / "k" / "1", content, state)
    return load_campaign(folder).runs[0]


def test_the_primary_metric_is_fixed() -> None:
    assert PRIMARY.key == "stalled" and [m for m in METRICS if m.primary] == [PRIMARY]
    assert len(BY_KEY) == len(METRICS)


def test_one_gitk_by_hand(tmp_path: Path) -> None:
    found = measure(one_run(tmp_path))
    assert found["stalled"] == pytest.approx(4 + 1 + 10)
    assert found["worst"] == pytest.approx(10)
    assert found["share-0.1"] == pytest.approx(100)
    assert found["share-1"] == pytest.approx(100 * 15 / 20)
    assert found["share-10"] == pytest.approx(100 * 10 / 20)
    # (10 x 0.5^2 + 4^2 + 1^2 + 10^2) / 2 / 20
    assert found["wait"] == pytest.approx(119.5 / 40)
    # 5 s are spent in gaps of 0.5 s, 6 s in gaps up to 1 s, 10 s up to 4 s, 20 s up to 10 s.
    assert found["p95"] == found["p99"] == pytest.approx(10)
    # From 0 to 10 s: 9.5 s of 10 s are spent in gaps up to 4 s; from 10 to 20 s all in one of 10 s.
    assert found["window-p50"] == pytest.approx((4 + 10) / 2)
    assert found["window-share"] == pytest.approx(100)
    assert found["elapsed"] == pytest.approx(20)


def test_several_gitks_are_added_up(tmp_path: Path) -> None:
    log = line_log([(1, "x"), (9, "x"), (2, "x")], 0.5)
    parameters = json.dumps(meta("k", parameters={"gitk": 2}))
    found = measure(one_run(tmp_path, meta_json=parameters, latency__gitk__2_log=log))
    assert found["stalled"] == pytest.approx(15 + 12)
    assert found["share-1"] == pytest.approx(100 * 27 / 32.5)
    assert found["elapsed"] == pytest.approx(20)


def test_a_gitk_without_a_log_makes_its_sums_unknown_not_small(tmp_path: Path) -> None:
    found = measure(one_run(tmp_path, meta_json=json.dumps(meta("k", parameters={"gitk": 2}))))
    for key in ("stalled", "worst", "share-1", "wait", "p95", "window-p50", "elapsed"):
        assert found[key] is None


LINES = [(0.5, "x")] * 10 + [(4.0, "x")] + [(0.5, "x")] * 10


@pytest.mark.parametrize(
    ("at", "known"),
    [(10, False), (0, True), (-1, False), (3, True)],
    ids=["the-stall", "half-a-second-at-first", "its-end", "half-a-second"],
)
def test_a_line_that_is_lost_may_have_been_a_stall(tmp_path: Path, at: int, known: bool) -> None:
    lines = line_log(LINES, 2.0).splitlines(keepends=True)
    del lines[at]
    ended = '{"event": "stream-end", "stream": "gitk-1", "elapsed": 16.0}\n'
    run = one_run(tmp_path, latency__gitk__1_log="".join(lines), events_jsonl=ended)
    found = measure(run)
    assert bool(lost(run)) != known
    for key in ("stalled", "worst", "share-0.1", "wait", "p99", "window-p50", "window-share"):
        assert (found[key] is not None) == known
    assert found["stalled"] == (pytest.approx(4 + 2) if known else None)


def test_a_deadline_that_is_lost_may_have_been_missed(tmp_path: Path) -> None:
    beats = [(0.1, f"beat {n} late 0.000") for n in range(3)] + [(0.6, "beat 3 late 0.500")]
    whole = line_log([*beats, (0.1, "beat 4 late 0.000")], 0.0).splitlines(keepends=True)
    cut = "".join(whole[:3] + whole[4:])
    assert measure(one_run(tmp_path / "a", latency__heartbeat_log="".join(whole)))["beats"] == 1
    assert measure(one_run(tmp_path / "b", latency__heartbeat_log=cut))["beats"] is None


def test_sound_and_counters_by_hand(tmp_path: Path) -> None:
    beats = [(0.1, f"beat {n} late {late:.3f}") for n, late in enumerate((0, 0.2, 0.05, 3))]
    chunks = [(0.1, f"chunk {n} late {late:.3f}") for n, late in enumerate((0, 0.9, 0.8, 0, 0.3))]
    vmstat = {
        "elapsed_s": [0, 1, 2],
        "late_s": [0, 0, 0],
        "pswpin": [100, 200, 612],
        "pgpgin": [0, 1024, 4096],
    }
    log = "[    1.0] <4> gitk: page allocation failure: order:2, mode:0x820(GFP_ATOMIC)\n"
    found = measure(
        one_run(
            tmp_path,
            latency__heartbeat_log=line_log(beats, 0.0),
            latency__player_log=line_log(chunks, 0.0),
            vmstat_tsv=table({name: [*values] for name, values in vmstat.items()}),
            kern_log=log,
        )
    )
    assert found["beats"] == 2  # more than 0.1 s late
    assert found["skips"] == 2 and found["skipped"] == pytest.approx(0.9 + 0.3)
    assert found["swap-in"] == pytest.approx(512 / 256)  # pages
    assert found["page-in"] == pytest.approx(4)  # KiB
    assert found["swap-out"] is None and found["page-out"] is None
    assert found["allocation"] == 1


def test_what_was_not_recorded_is_not_available(tmp_path: Path) -> None:
    found = measure(one_run(tmp_path))
    for key in ("beats", "skips", "skipped", "swap-in", "allocation"):
        assert found[key] is None


@pytest.mark.parametrize("state", ["hung", "panicked", "oom", "lost"])
def test_a_failed_run_is_the_worst_of_all(tmp_path: Path, state: str) -> None:
    run = one_run(tmp_path, state, kern_log="")
    assert failed(run) and counted(run)
    for key, value in measure(run).items():
        assert value == (math.inf if BY_KEY[key].felt else None), key


@pytest.mark.parametrize("state", ["aborted", "unheard-of"])
def test_a_run_that_somebody_stopped_is_no_result(tmp_path: Path, state: str) -> None:
    run = one_run(tmp_path, state)
    assert not counted(run) and not failed(run)


@given(GAPS)
def test_figures_by_time_keep_their_order(gaps: list[float]) -> None:
    length = np.array(gaps)
    quantiles = [quantile_by_time(length, length, q) for q in (0.01, 0.5, 0.95, 0.99, 1)]
    assert quantiles == sorted(quantiles)
    assert quantiles[0] >= length.min() and quantiles[-1] == length.max()
    assert length.min() / 2 * 0.999 <= expected_wait(length) <= length.max() / 2 * 1.001
    doubled = quantile_by_time(2 * length, length, 0.95)
    assert doubled == 2 * quantile_by_time(length, length, 0.95)


@given(GAPS)
def test_windows_lie_between_the_shortest_and_the_longest_gap(gaps: list[float]) -> None:
    length = np.array(gaps)
    found = window_quantiles(np.cumsum(length) - length, length, 0.95)
    assert found is not None
    assert found.min() > 0 and found.max() <= min(10, length.max()) + 1e-9
    assert abs(len(found) - math.ceil(length.sum() / 10)) <= 1


def test_windows_tell_one_long_tooth_from_a_spread_tail(tmp_path: Path) -> None:
    """22 windows: one tooth from 97.5 to 119.5 s, in 3 of them, or one of 2 s in each."""
    tooth = [(0.1, "x")] * 975 + [(22.0, "x")] + [(0.1, "x")] * 1005
    tail = ([(0.1, "x")] * 80 + [(2.0, "x")]) * 22
    one, spread = (
        measure(one_run(tmp_path / name, latency__gitk__1_log=line_log(gaps, 0.0)))
        for name, gaps in (("tooth", tooth), ("tail", tail))
    )
    assert (one["worst"], spread["worst"]) == (22, 2) and one["stalled"] == 22
    assert one["window-p50"] == pytest.approx(0.1) and spread["window-p50"] == pytest.approx(2)
    assert one["window-share"] == pytest.approx(100 * 3 / 22)
    assert spread["window-share"] == pytest.approx(100)


def test_a_window_holds_of_a_gap_what_lies_in_it() -> None:
    """5 s of 0.5 s, then 31 s: 5 s of it until 10 s, twice 10 s, 6 s in the last window."""
    length = np.array([0.5] * 10 + [31.0])
    found = window_quantiles(np.cumsum(length) - length, length, 0.95)
    assert found is not None and found == pytest.approx([5, 10, 10, 6])


def test_a_damaged_stamp_does_not_make_a_million_windows() -> None:
    assert window_quantiles(np.array([0.0, 9e7]), np.array([1.0, 1.0]), 0.95) is None
