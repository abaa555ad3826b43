# SPDX-License-Identifier: GPL-2.0-or-later
"""What is read at once is what is read line by line, and what is read later is the same."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from analysis.figures.stalls import lateness
from analysis.reading import counter_tables, latency_log
from analysis.reading.load import load_campaign
from benchmarks.synthetic_results.make import line_log
from errors import UserError
from tests.support.loading import one_run

NEARLY = st.sampled_from(
    [
        *(b"0.100", b"12.345", b"0.1", b"", b" ", b"nan", b"-1.000", b"1234567.000"),
        *(b"00000001.500", b"123456789.000", b".500", b"1.0000", b"\xc2\xb2.000", b"1,000"),
        *(b"x", b"[end]", b"7"),
    ]
)
TEXT = st.sampled_from([b"", b" ", b" a", b" a b  c", b"  late 1", b" [end]", b" \xff\x00", b"\r"])
NEARLY_LINE = st.tuples(NEARLY, NEARLY, TEXT).map(lambda one: one[0] + b" " + one[1] + one[2])
STAMP = st.integers(0, 10**11 - 1).map(lambda ms: f"{ms // 1000}.{ms % 1000:03d}".encode())
GOOD_LINE = st.tuples(STAMP, STAMP, TEXT.filter(lambda text: text != b"\r")).map(
    lambda one: one[0] + b" " + one[1] + one[2]
)
NEARLY_CELL = st.sampled_from(
    [
        *(b"0", b"7", b"12.500", b"0.25", b"", b"184467440737095516", b"9" * 20, b"9" * 21),
        *(b"1.5.5", b".5", b"5.", b"-1", b"nan", b"1e5", b" 1", b"\x00"),
        *(b"0." + b"1" * 9, b"0." + b"1" * 10),
    ]
)
GOOD_CELL = st.integers(0, 10**20 - 1).map(lambda n: str(n).encode()) | STAMP | st.just(b"")
THREE_GOOD = st.lists(GOOD_CELL, min_size=3, max_size=3)
THREE_NEARLY = st.lists(NEARLY_CELL, min_size=3, max_size=3)


@given(lines=st.lists(GOOD_LINE) | st.lists(NEARLY_LINE | GOOD_LINE, max_size=4))
@example(lines=[b"123456789.000 1.000 a"])
@example(lines=[b"1.000 123456789.000"])
@example(lines=[b"1.000 .500 a"])
@example(lines=[b"1.000  1.000"])
@example(lines=[b"12:345 1.000"])
def test_a_log_read_at_once_is_the_log_read_line_by_line(lines: list[bytes]) -> None:
    body = b"".join(line + b"\n" for line in lines)
    at_once = latency_log.undamaged(body)
    elapsed, gap, text = latency_log.line_by_line(body)
    damaged = len(elapsed) < body.count(b"\n")
    assert (at_once is None) == damaged  # whatever is damaged is seen, and nothing else
    if at_once is not None:
        assert at_once[0].tolist() == elapsed.tolist() and at_once[1].tolist() == gap.tolist()
        assert list(at_once[2]) == list(text) and len(text) == len(lines)


@given(
    rows=st.lists(THREE_GOOD)
    | st.lists(THREE_NEARLY | st.lists(NEARLY_CELL, min_size=1), max_size=4)
)
@example(rows=[[b"1", b"2", b"3", b"4"], [b"5", b"6"]])
@example(rows=[[b"1", b".5", b"2"]])
@example(rows=[[b"1", b"5.", b"2"]])
@example(rows=[[b"1", b"1.5.5", b"2"]])
@example(rows=[[b"1", b"9" * 21, b"2"]])
@example(rows=[[b"1", b"0." + b"1" * 10, b"2"]])
@example(rows=[[b"", b"1", b"2"]])
def test_a_table_read_at_once_is_the_table_read_row_by_row(rows: list[list[bytes]]) -> None:
    rest = b"".join(b"\t".join(row) + b"\n" for row in rows)
    at_once = counter_tables.undamaged(rest, 3, 0, [0, 1, 2])
    careful, *left_out = counter_tables.row_by_row(rest, 3, 0, [0, 1, 2])
    if at_once is None:  # it may be too careful, but not the other way round
        assert any(left_out) or any(len(cell) > 20 for row in rows for cell in row)
        return
    assert not any(left_out) and len(careful[0]) == len(rows)
    for one, other in zip(at_once, careful, strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_column_that_is_asked_for_later_is_read_from_the_file(tmp_path: Path) -> None:
    raw = (
        b"elapsed_s\tlate_s\tpswpin\tother\tother\n0.250\t0.000\t1\t7\t0\n0.500\t0.000\t2\t8\t0\n"
        b"0.000\t0.000\t0\t6\t0\n"
    )
    run = one_run(tmp_path, {"vmstat.tsv": raw})
    assert set(run.tables["vmstat"].columns) == {"elapsed_s", "late_s", "pswpin"}
    found = run.column("vmstat", "other")
    assert found is not None and found[0].tolist() == [0.0, 0.25, 0.5]
    assert found[1].tolist() == [6, 7, 8]  # the first of two, in order of time
    assert run.column("vmstat", "nothing") is None
    changed = load_campaign(tmp_path).runs[0]
    (tmp_path / "k" / "1" / "vmstat.tsv").write_bytes(raw.replace(b"\t7\t", b"\t9\t"))
    with pytest.raises(UserError, match="was changed while it was read"):
        changed.column("vmstat", "other")


@given(
    st.lists(
        st.sampled_from(["beat 1 late 0.000", "chunk 22 late 12.3450", "beat late 0.1", "x"])
        | st.integers(0, 10**9).map(lambda ms: f"beat {ms} late {ms / 1000:.3f}"),
        max_size=6,
    ),
    st.sampled_from(["", "left out", "moved"]),
)
@example([f"beat {n} late {n}.000" for n in (1, 2, 3)], "moved")
@example(["x", "beat 2 late 2.000"], "left out")
def test_lateness_read_at_once_is_lateness_read_line_by_line(texts: list[str], damage: str) -> None:
    raw = "".join(f"{n}.000 1.000 {text}\n" for n, text in enumerate(texts, 1)).encode()
    if damage == "left out":  # it reaches back over the line before it
        raw += b"9.500 9.000 beat 8 late 8.000\n"
    elif damage == "moved":
        rows = raw.splitlines(keepends=True)
        raw = b"".join([*rows[1:2], *rows[:1], *rows[2:]])
    lines = latency_log.parse_lines(raw)
    matches = [latency_log.LATE.fullmatch(text.encode()) for text in lines.text]
    late = lines.text.lateness()
    if not any(matches):
        assert late is None
        return
    assert late is not None
    np.testing.assert_array_equal(late, [float(one[1]) if one else np.nan for one in matches])


def test_what_a_paced_program_says_of_its_lateness_is_read(tmp_path: Path) -> None:
    rows = [(0.1, "beat 1 late 0.000"), (0.3, "beat 2 late 0.200"), (0.1, "beat x late 9.000")]
    rows += [(0.1, "beat 4 late 0.150"), (0.1, "beat 5 late 0.050"), (0.1, "beat 6 late 0.300")]
    run = one_run(tmp_path, {"latency-heartbeat.log": line_log(rows, 0.0)})
    found = lateness(run.streams["heartbeat"], 0.1)
    assert found is not None and (found.deadlines, found.missed, found.unread) == (5, 3, 1)
    assert found.spans == (0.2, 0.3) and found.worst == 0.3
    (tmp_path / "k" / "1" / "latency-heartbeat.log").write_text("")
    with pytest.raises(UserError, match="was changed"):
        _ = run.streams["heartbeat"].lines
