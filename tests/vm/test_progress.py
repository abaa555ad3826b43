# SPDX-License-Identifier: GPL-2.0-or-later
"""A run that goes on to its limit is not hung; one whose programs are all silent by then is."""

from pathlib import Path

import pytest

from contract.run_record import Events
from run.arguments import parse
from vm import progress
from workloads.registry import every, progress_streams

STREAMS = ("gitk-1", "gitk-2")
LATE = "not done"


def run(
    folder: Path, logs: dict[str, str], ended: float | None = None, sampled: float | None = None
) -> Path:
    for stream, text in logs.items():
        (folder / f"latency-{stream}.log").write_text(text)
    events = Events(folder / "events.jsonl")
    events.write("start", t0=1.0)
    if ended is not None:
        events.write("end", elapsed=ended)
    events.close()
    if sampled is not None:
        rows = f"elapsed_s\tlate_s\tpswpin\n0.000\t0.000\t0\n{sampled:.3f}\t0.000\t0\n"
        (folder / "vmstat.tsv").write_text(rows)
    return folder


def lines(*at: float, end: float | None = None) -> str:
    said = "".join(f"{one:.3f} 0.100 pass 1 commits 100\n" for one in at)
    return said + (f"{end:.3f} {end - at[-1] if at else end:.3f} [end]\n" if end else "")


@pytest.mark.parametrize(
    ("first", "second", "state"),
    [
        (lines(1, 95, end=100), lines(1, 99, end=100), "unfinished"),
        (lines(1, 2, end=100), lines(1, 71, end=100), "unfinished"),  # one of them is enough
        (lines(1, 69, end=100), lines(1, 70, end=100), "hung"),
        (lines(end=100), lines(end=100), "hung"),
        (lines(1, 2, end=100), lines(1, 80, end=80.1), "unfinished"),  # done 20 s before
        ("", "", "hung"),
        ("x y z\n\n 9\n", lines(1, 99) + "999.000 0.1", "unfinished"),  # damaged, and cut off
    ],
)
def test_the_last_line_of_any_tells(tmp_path: Path, first: str, second: str, state: str) -> None:
    folder = run(tmp_path, {"gitk-1": first, "gitk-2": second, "heartbeat": lines(99.9)}, 100.0)
    found, why = progress.at_limit(folder, STREAMS, 30, LATE)
    assert found == state and why.startswith(LATE) and ("no line" in why) == (state == "hung")


def test_without_the_runs_end_what_left_it_last_tells_how_late_it_is(tmp_path: Path) -> None:
    logs = {"gitk-1": lines(10), "gitk-2": lines(20)}
    assert progress.at_limit(run(tmp_path, logs), STREAMS, 30, LATE)[0] == "unfinished"
    late = run(tmp_path, logs, sampled=50.0)
    silent = f"{LATE}, and no line came in the last 30 s (gitk-1, gitk-2)"
    assert progress.at_limit(late, STREAMS, 30, LATE) == ("hung", silent)
    assert progress.at_limit(late, STREAMS, 31, LATE) == ("unfinished", LATE)


def test_of_a_long_log_the_end_is_enough(tmp_path: Path) -> None:
    logs = {"gitk-1": lines(*(n / 10 for n in range(1, 9000)))}
    assert len(logs["gitk-1"]) > 2 * progress.TAIL_BYTES
    folder = run(tmp_path, logs, sampled=920.0)
    assert progress.at_limit(folder, STREAMS, 21, LATE)[0] == "unfinished"
    assert progress.at_limit(folder, STREAMS, 20, LATE)[0] == "hung"


def test_each_workload_has_streams_of_which_a_line_is_progress() -> None:
    assert progress_streams(parse([])) == ("gitk-1", "gitk-2", "gitk-3", "gitk-4")
    for name in every():
        assert progress_streams(parse(["--workload", name])), name
