# SPDX-License-Identifier: GPL-2.0-or-later
"""reading.load: what is read, what is refused, and that damage is named and never raises."""

import json
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from analysis.figures.stalls import totals, worst
from analysis.reading.counter_tables import parse_table
from analysis.reading.latency_log import ROUNDING, parse_events, parse_lines
from analysis.reading.load import load_campaign
from analysis.text.summary_files import summary
from benchmarks.synthetic_results.make import line_log, meta, table, write_run
from errors import UserError
from tests.support.loading import one_run

GAPS = [(0.1, "a"), (2.5, "b"), (0.0, "c"), (0.2, "d"), (12.0, "e"), (0.3, "f")]
LOG = line_log(GAPS, 1.5)


def test_a_stream_is_read_and_its_gaps_add_up_to_its_elapsed_time(tmp_path: Path) -> None:
    stream = one_run(tmp_path, {"latency-gitk-1.log": LOG}).streams["gitk-1"]
    assert list(stream.lines) == ["a", "b", "c", "d", "e", "f"]
    assert stream.open_gap == 1.5 and stream.ended
    assert stream.gap.sum() + stream.open_gap == pytest.approx(stream.until) == 16.6


def test_without_an_end_the_open_gap_reaches_to_the_last_thing_sent(tmp_path: Path) -> None:
    samples = table({"elapsed_s": [1.0, 40.25], "late_s": [0.0, 0.0], "pgpgin": [1, 2]})
    files: dict[str, str | bytes] = {
        "latency-gitk-1.log": line_log(GAPS, None),
        "latency-gitk-2.log": "",
        "vmstat.tsv": samples,
    }
    run = one_run(tmp_path, files, state="hung")
    assert run.state == "hung" and run.last_sent == 40.25
    assert run.streams["gitk-1"].open_gap == pytest.approx(40.25 - 15.1)
    assert run.streams["gitk-2"].open_gap == 40.25
    assert not run.streams["gitk-2"].ended


def test_a_stream_that_never_began_is_no_stream(tmp_path: Path) -> None:
    facts = {key: value for key, value in meta("k").items() if key != "t0"}
    run = one_run(tmp_path, {"latency-gitk-1.log": "", "meta.json": json.dumps(facts)})
    assert run.streams == {}
    assert any("never began" in warning for warning in run.warnings)


def test_missing_is_not_zero(tmp_path: Path) -> None:
    columns: dict[str, list[float | int | None]] = {
        "elapsed_s": [0.25, 0.5, 0.75],
        "late_s": [0.0, 0.0, 0.0],
        "pswpin": [4, None, 8],
        "empty": [None, None, None],
    }
    run = one_run(tmp_path, {"vmstat.tsv": table(columns), "psi.tsv": ""})
    found = run.column("vmstat", "pswpin")
    assert found is not None and found[0].tolist() == [0.25, 0.75]
    assert run.column("vmstat", "empty") is None
    assert run.column("vmstat", "absent") is None
    assert run.column("psi", "memory_some_us") is None


def test_each_kind_of_damage_is_named() -> None:
    assert parse_lines(b"0.100 0.100 a\n0.2").problems == [
        "its last line was cut short and is left out"
    ]
    for bad in (b"nan 0.1 x", b"-1.000 0.100 x", b"inf inf x", b"1e5 0.100 x", b"\xff\x00", b""):
        lines = parse_lines(b"0.100 0.100 a\n" + bad + b"\n")
        assert list(lines.text) == ["a"] and lines.problems == [
            "1 line could not be read and left out"
        ]
    assert "huge" in parse_lines(b"0.100 0.100 " + b"x" * 10**6 + b"\n").problems[0]
    assert "goes on" in parse_lines(b"0.100 0.100 [end]\n0.200 0.100 a\n").problems[0]
    lost = parse_lines(b"0.100 0.100 a\n9.100 1.000 b\n")
    assert lost.unaccounted == pytest.approx(8.0)
    wrong = parse_lines(b"0.100 0.100 a\n1.000 9.000 b\n1.500 0.500 c\n")
    assert list(wrong.text) == ["a", "c"] and "overlap" in wrong.problems[0]


def test_a_damaged_table_keeps_its_good_rows() -> None:
    raw = (
        b"elapsed_s\tlate_s\tx\n0.500\t0.000\tnan\n0.250\t0.000\t-3\n1.0\n0.750\t\t7\nnan\t0\t1\n0."
    )
    damaged = parse_table(raw)
    assert damaged is not None
    assert damaged.columns["elapsed_s"].tolist() == [0.25, 0.5, 0.75]
    assert damaged.columns["x"].tolist()[2] == 7 and np.isnan(damaged.columns["x"][:2]).all()
    assert len(damaged.problems) == 4
    assert parse_table(b"elapsed_s\tlate") is None and parse_table(b"\x00\xff\n1\n") is None


def test_damaged_events_are_left_out() -> None:
    events, problems = parse_events(b'{"event": "start"}\nnot json\n{"event": 3}\n[[[\n{"eve')
    assert len(events) == 1 and len(problems) == 2
    assert parse_events(b"[" * 100_000 + b"\n")[0] == []


@given(cut=st.integers(0, len(LOG)))
def test_a_truncated_log_is_a_prefix(cut: int) -> None:
    lines = parse_lines(LOG[:cut].encode())
    whole = parse_lines(LOG.encode())
    n = len(lines.text)
    assert lines.elapsed.tolist() == whole.elapsed[:n].tolist()
    assert lines.gap.tolist() == whole.gap[:n].tolist()
    assert bool(lines.problems) == (cut > 0 and LOG[cut - 1] != "\n")


SWAPPED = LOG.splitlines()
SWAPPED[1:3] = reversed(SWAPPED[1:3])


@given(order=st.permutations(LOG.splitlines()))
@example(order=SWAPPED)
def test_a_reordered_log_is_put_in_order_and_that_is_said(order: list[str]) -> None:
    lines = parse_lines("".join(f"{line}\n" for line in order).encode())
    assert lines.gap.tolist() == [gap for gap, _ in GAPS]
    assert lines.end == (16.6, 1.5)
    if order != LOG.splitlines():
        assert lines.problems or sorted(order, key=lambda line: float(line.split()[0])) == order


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None, max_examples=150)
@given(at=st.integers(0, len(LOG) - 1), byte=st.integers(0, 255))
def test_a_flipped_byte_is_named_or_changes_no_figure(at: int, byte: int) -> None:
    raw = bytearray(LOG.encode())
    raw[at] = byte
    with tempfile.TemporaryDirectory() as folder:
        right = one_run(Path(folder) / "a", {"latency-gitk-1.log": LOG, **ENDED})
        maybe = one_run(Path(folder) / "b", {"latency-gitk-1.log": bytes(raw), **ENDED})
    good, bad = right.streams["gitk-1"], maybe.streams.get("gitk-1")
    if len(maybe.warnings) > len(right.warnings):
        return
    assert bad is not None and abs(worst(bad) - worst(good)) <= 2 * ROUNDING
    for one, other in zip(totals(good), totals(bad), strict=True):
        assert abs(one.seconds - other.seconds) <= 2 * ROUNDING or one.threshold == 0.1


ENDED: dict[str, str | bytes] = {
    "events.jsonl": '{"event": "stream-end", "stream": "gitk-1", "elapsed": 16.6, "lines": 6}\n'
}
NAMES = ("latency-gitk-1.log", "latency-player.log", "vmstat.tsv", "psi.tsv", "events.jsonl")
NUMBERS = st.sampled_from(
    ["nan", "-1.000", "inf", "1e999", "9" * 400, "0.100", "5.000", "", "\x00"]
)
ROWS = st.lists(st.lists(NUMBERS, max_size=4).map("\t".join) | st.lists(NUMBERS).map(" ".join))
JUNK = (
    st.binary(max_size=300)
    | ROWS.map(lambda rows: "\n".join(["elapsed_s\tlate_s\tpswpin", *rows, ""]).encode())
    | ROWS.map(lambda rows: "\n".join(rows).encode())
)
VALUE = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=200),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)
KEYS = sorted(set(meta("k")) - {"format"})


PLANNED = b'format = 1\n[[variant]]\nlabel = "k"\n[[run]]\nvariant = "k"\nnumber = 1\n'


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None, max_examples=100)
@given(
    files=st.dictionaries(st.sampled_from([*NAMES, "kern.log", "meta.json"]), JUNK),
    facts=st.dictionaries(st.sampled_from([*KEYS, "order", "knobs", "host"]), VALUE),
    status=st.dictionaries(st.sampled_from(["state", "why", "elapsed_s"]), VALUE),
    plan=st.binary(max_size=20) | st.integers(0, len(PLANNED)).map(lambda cut: PLANNED[:cut]),
)
def test_nothing_on_disk_makes_a_traceback(
    files: dict[str, bytes], facts: dict[str, object], status: dict[str, object], plan: bytes
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        content: dict[str, str | bytes] = {"meta.json": json.dumps({**meta("k"), **facts}), **files}
        run = write_run(Path(folder) / "k" / "1", content)
        (run / "status.json").write_text(json.dumps({"format": 1, "state": "lost", **status}))
        (Path(folder) / "plan.toml").write_bytes(plan)
        try:
            text = summary(load_campaign(Path(folder)))
        except UserError as refused:  # a plan that is damaged into another format version
            assert "format version" in str(refused) and "\n" not in str(refused)
            return
    assert max(len(line) for line in text.splitlines()) <= 75
    assert "nan" not in text.replace("finance", "").split() and "inf" not in text.split()
