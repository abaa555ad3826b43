# SPDX-License-Identifier: GPL-2.0-or-later
"""Keys and what they felt, worked out by hand; and whatever a log may hold."""

import json
import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.figures import observer_faults
from analysis.figures.keys import IDLE_S, key_figures, words
from analysis.figures.metrics import measure
from analysis.reading.keys import Key, Keys, read_keys
from analysis.reading.latency_log import parse_lines
from analysis.reading.load import Run, load_campaign
from analysis.reading.streams import Stream
from analysis.text import compare_text
from analysis.text.run_summary import section
from analysis.verdicts.compare import compare
from benchmarks.synthetic_results.make import line_log, meta, write_run
from graphs.page import tables
from tests.support.verdicts import campaign

END = "events.jsonl"
FIRST = "first key after 30 s of idleness, mean s"
GOLDEN = Path(__file__).parents[1] / "golden" / "keys"
# Elapsed of each line; the shell is late once, and the editor never shows its last key.
LINES = [
    (11.0, "due 1 shell idle 13.000"),
    (11.005, "key 1 shell late 0.005"),
    (12.0, "due 2 shell idle 1.000"),
    (12.2, "key 2 shell late 0.200"),
    (22.0, "due 3 editor idle 35.000"),
    (24.0, "key 3 editor late 2.000"),
    (44.0, "due 4 shell idle 32.000"),
    (45.0, "due 5 shell idle 1.000"),
    (56.0, "key 4 shell late 12.000"),
    (56.0, "key 5 shell late 11.000"),
    (57.0, "due 6 editor idle 35.000"),
]


def log(lines: list[tuple[float, str]], end: float | None) -> str:
    """A latency log of lines at these elapsed times."""
    last, gaps = 0.0, []
    for at, text in lines:
        gaps.append((at - last, text))
        last = at
    return line_log(gaps, None if end is None else end - last)


def run_of(folder: Path, text: str, events: str = "", **facts: object) -> Run:
    content: dict[str, str | bytes] = {
        "meta.json": json.dumps(meta("k", parameters={"gitk": 1}, **facts)),
        "latency-gitk-1.log": line_log([(1.0, "x")] * 60, 0.0),
        "latency-keys.log": text,
        END: events,
    }
    write_run(folder / "k" / "1", content)
    return load_campaign(folder).runs[0]


def test_by_hand(tmp_path: Path) -> None:
    run = run_of(tmp_path, log(LINES, 60.0))
    assert "keys" not in run.streams and run.keys and run.keys.unread == 0
    assert [(key.number, key.program, key.shown) for key in run.keys.keys] == [
        *((1, "shell", True), (2, "shell", True), (3, "editor", True)),
        *((4, "shell", True), (5, "shell", True), (6, "editor", False)),
    ]
    assert run.keys.keys[-1].late == pytest.approx(3.0)
    found = measure(run)
    # 0.2, 2, 12, 11 and at least 3 s of six keys.
    assert found["keys-0.1"] == pytest.approx(100 * 5 / 6)
    assert found["keys-1"] == pytest.approx(100 * 4 / 6)
    # The last one may yet take 10 s.
    assert found["keys-10"] == pytest.approx(100 * 2 / 5)
    assert found["key-worst"] == pytest.approx(12.0)
    assert found["key-first"] == pytest.approx((2 + 12 + 3) / 3)


def test_keys_in_windows_are_figures_of_their_own(tmp_path: Path) -> None:
    in_window = [(at, line.replace("editor", "xterm")) for at, line in LINES]
    keys = {"programs": {"shell": "bash", "xterm": "xterm"}, "windows": ["xterm"]}
    run = run_of(tmp_path, log(in_window, 60.0), keys=keys)
    assert run.keys and {key.program for key in run.keys.keys} == {"shell"}
    assert run.window_keys and [key.number for key in run.window_keys.keys] == [3, 6]
    figures = measure(run)
    assert (figures["keys-1"], figures["key-worst"]) == (50.0, 12.0)
    assert (figures["window-keys-1"], figures["window-key-worst"]) == (100.0, 3.0)
    assert figures["window-key-first"] == pytest.approx((2 + 3) / 2)
    text = " ".join(" ".join(section(run, 1, None)).split())
    assert "keys 4 keys: 75 % took at least 0.1 s" in text
    assert "in windows 2 keys: 100 % took at least 0.1 s" in text
    assert "the worst at least 3.0 s (xterm)" in text


def test_without_windows_there_are_no_figures_of_them(tmp_path: Path) -> None:
    run = run_of(tmp_path, log(LINES, 60.0))
    assert run.window_keys is None and measure(run)["window-keys-1"] is None
    assert "in windows" not in "\n".join(section(run, 1, None))


def test_in_the_summary(tmp_path: Path) -> None:
    text = " ".join(" ".join(section(run_of(tmp_path, log(LINES, 60.0)), 1, None)).split())
    assert (
        "keys 6 keys: 83 % took at least 0.1 s, 67 % took at least 1 s, 40 % took at least 10 s; "
        "the worst 12.0 s (shell); the first after 30 s of idleness 5.7 s on average; 1 never shown"
        in text
    )


def test_a_recorded_stream_reads_as_what_was_done_to_its_programs(tmp_path: Path) -> None:
    """tests/capture_keys.py recorded it: stopped for 3 s, killed, stopped for good."""
    run = run_of(tmp_path, (GOLDEN / "known-delays.log").read_text())
    assert run.keys and run.keys.unread == 0
    late = {key.number: key.late for key in run.keys.keys if key.late >= 0.1}
    # Keys 1 to 3 waited for the shell, 13 to 15 for the pager until the end.
    assert late == pytest.approx({1: 3.0, 2: 2.5, 3: 2.0, 13: 2.503, 14: 2.003, 15: 1.503})
    assert [key.number for key in run.keys.keys if not key.shown] == [13, 14, 15]
    assert [key.program for key in run.keys.keys].count("editor") == 3
    (ended,) = run.keys.ended
    assert (ended.name, ended.status, ended.at) == ("editor", -9, 12.501)


def test_a_real_runs_keys_by_hand(tmp_path: Path) -> None:
    """6.12.118 in 230 MiB, while a program ate memory until 48.7 s; the run ended at 112.9 s."""
    over = json.dumps({"t": 1.0, "event": "end", "elapsed": 112.9}) + "\n"
    run = run_of(tmp_path, (GOLDEN / "6.12-runaway.log").read_text(), over)
    assert run.keys and run.keys.unread == 0 and not run.keys.ended
    assert len(run.keys.keys) == 30 and all(key.shown for key in run.keys.keys)
    found = measure(run)
    # 1 to 6, 10 to 13; and 7, 14, 16, 19.
    assert found["keys-1"] == pytest.approx(100 * 10 / 30)
    assert found["keys-0.1"] == pytest.approx(100 * 14 / 30)
    assert (found["keys-10"], found["key-worst"]) == (0.0, 6.2)
    firsts = (0.467, 4.629, 1.361, 0.521, 0.459, 0.002, 0.002, 0.002)
    assert found["key-first"] == pytest.approx(sum(firsts) / len(firsts))


def test_what_comes_after_the_runs_end_is_no_key_of_it(tmp_path: Path) -> None:
    over = json.dumps({"t": 1.0, "event": "end", "elapsed": 50.0}) + "\n"
    run = run_of(tmp_path, log(LINES, 60.0), over)
    assert run.keys
    assert [(key.number, key.shown) for key in run.keys.keys[3:]] == [(4, False), (5, False)]
    # Shown after it: until then they were not.
    assert [key.late for key in run.keys.keys[3:]] == [pytest.approx(6.0), pytest.approx(5.0)]


def test_an_open_worst_is_said_to_be_at_least(tmp_path: Path) -> None:
    run = run_of(tmp_path, log(LINES[:5], 60.0))
    assert run.keys and (found := key_figures(run.keys))
    assert "the worst at least 38.0 s (editor)" in words(found)


def test_a_program_that_ended_is_named_and_waits_no_longer(tmp_path: Path) -> None:
    lines = [*LINES, (58.0, "ended editor status -9")]
    run = run_of(tmp_path, log(lines, 60.0))
    assert run.keys and run.keys.keys[-1].late == pytest.approx(1.0)
    found = key_figures(run.keys)
    assert found and words(found).endswith("; editor ended with status -9 at 58.0 s")


def test_a_lost_line_makes_no_open_key() -> None:
    lost = [line for line in LINES if line[1] != "key 2 shell late 0.200"]
    for lines in (lost, [*lost, (59.0, "key 99 shell late 1.000"), (59.0, "beat 1")]):
        unread = 1 + len(lines) - len(lost)
        keys = read_of(log(lines, 60.0), 60.0)
        assert [key.number for key in keys.keys] == [1, 3, 4, 5, 6]
        assert keys.unread == unread


def test_without_keys_nothing_is_available(tmp_path: Path) -> None:
    run = run_of(tmp_path, "", keys={"programs": {}})
    assert run.keys is None and measure(run)["keys-1"] is None
    assert "keys         not available" in "\n".join(section(run, 1, None))


def test_a_comparison_and_the_page_have_them_beside_the_stalls(tmp_path: Path) -> None:
    campaign(tmp_path, {"6.1": [5.0, 6.0], "7.2": [5.0, 6.0]})
    for number in (1, 2):
        (tmp_path / "6.1" / str(number) / "latency-keys.log").write_text(log(LINES[:4], 60.0))
        (tmp_path / "7.2" / str(number) / "latency-keys.log").write_text(log(LINES, 60.0))
    compared = compare(load_campaign(tmp_path))
    rows = dict(tables.metrics(compared))
    assert [cell.split()[0] for cell in rows["% of keys that took >= 0.1 s"]] == ["50.0", "83.3"]
    assert [cell.split()[0] for cell in rows["worst key s"]] == ["0.2", "12.0"]
    # Nobody was idle for so long in the first: not available.
    assert [cell.split()[0] for cell in rows[FIRST]] == ["-", "5.67"]
    assert FIRST in compare_text.text(compared)
    assert compared.metrics[0].key == "stalled"


def test_a_run_that_failed_has_the_worst(tmp_path: Path) -> None:
    write_run(tmp_path / "k" / "1", {"latency-keys.log": log(LINES, 60.0)}, "hung")
    found = measure(load_campaign(tmp_path).runs[0])
    assert found["keys-1"] == found["key-first"] == math.inf


@pytest.mark.parametrize(
    "own, why",
    [
        ({"name": "keys", "major_faults": 2}, "keys had 2 major faults"),
        ({"name": "keys", "worst_late_s": 1.5}, "keys was 1.5 s late"),
        ({"name": "other"}, "keys ended before its time"),
    ],
)
def test_a_prober_that_was_disturbed_says_so(
    tmp_path: Path, own: dict[str, object], why: str
) -> None:
    observers = [{"name": "recorder"}, {"name": "sampler"}, own]
    run = run_of(tmp_path, log(LINES, 60.0), keys={"programs": {}}, observers=observers)
    assert observer_faults.of_run(run) == [why]


def read_of(text: str, until: float) -> Keys:
    """The keys of a log, without a file."""
    raw = parse_lines(text.encode("ascii", "replace"))

    class InMemory(Stream):
        @property
        def lines(self) -> list[str]:
            return list(raw.text)

    stream = InMemory("keys", 0.0, raw.elapsed, raw.gap, 0.0, True)
    return read_keys(stream, until)


WORDS = st.sampled_from(
    [
        *("due 1 shell idle 31.000", "due 2 shell idle 1.000", "due 1 pager idle 0.000"),
        *("key 1 shell late 0.100", "key 2 shell late 9.500", "key 3 pager late 1.000"),
        *("ended shell status -9", "ended pager status 1", "due 4 pager idle 99999999.999"),
    ]
)


@given(
    st.lists(st.tuples(st.floats(0, 50), st.one_of(WORDS, st.text(max_size=20))), max_size=30),
    st.floats(0, 60),
)
def test_no_log_breaks_the_reader(lines: list[tuple[float, str]], until: float) -> None:
    text = log([(at, line.replace("\n", " ")) for at, line in sorted(lines)], 60.0)
    keys = read_of(text, until)
    numbers = [key.number for key in keys.keys]
    assert numbers == sorted(set(numbers))
    assert all(key.due < until and key.late >= 0 for key in keys.keys)
    if found := key_figures(keys):
        assert found.worst.late == max(key.late for key in keys.keys)
        assert all(share is None or 0 <= share <= 100 for share in found.shares.values())
        assert found.firsts == sum(key.idle >= IDLE_S for key in keys.keys)


@given(st.lists(st.tuples(st.floats(0, 40), st.booleans()), min_size=1, max_size=40))
def test_keys_of_known_delays_have_these(delays: list[tuple[float, bool]]) -> None:
    keys = [
        Key(number, "shell", float(number), 31.0 if first else 1.0, late, True)
        for number, (late, first) in enumerate(delays)
    ]
    found = key_figures(Keys(tuple(keys)))
    assert found and found.open == 0
    for threshold, share in found.shares.items():
        assert share == pytest.approx(
            100 * sum(late >= threshold for late, _ in delays) / len(delays)
        )
    firsts = [late for late, first in delays if first]
    assert found.first == (pytest.approx(sum(firsts) / len(firsts)) if firsts else None)
