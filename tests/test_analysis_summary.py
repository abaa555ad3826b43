# SPDX-License-Identifier: GPL-2.0-or-later
"""summary.txt: its figures, its width, and that it judges nothing."""

import json
from pathlib import Path

import pytest

from analysis.load import load_campaign
from analysis.summary import main, summary
from setup.errors import UserError
from tests.make_results import line_log, make_campaign, meta, table, write_run

PARAMETERS = {"profile": "quick", "gitk": 2}
HOSTILE = "`touch x` $HOME @a \"'\n\x1b[31m<script>alert(1)</script> \ud800" + "W" * 300


def text_of(folder: Path) -> str:
    text = summary(load_campaign(folder))
    assert all(len(line) <= 75 for line in text.splitlines())
    return text


def test_the_figures_of_a_run_made_by_hand(tmp_path: Path) -> None:
    files: dict[str, str | bytes] = {
        "meta.json": json.dumps(meta("6.1", parameters=PARAMETERS, observer_problems=["x"])),
        "latency-gitk-1.log": line_log([(0.1, "x"), (31.2, "x")], 0.1),
        "latency-gitk-2.log": line_log([(2.0, "x"), (0.5, "x")], 0.0),
        "latency-player.log": line_log([(0.1, "chunk 1 late 0.000"), (2, "chunk 2 late 1.900")], 0),
        "latency-heartbeat.log": line_log([(0.1, "beat 1 late 0.000"), (9, "beat 2 late 8.9")], 0),
        "vmstat.tsv": table(
            {
                "elapsed_s": [0.0, 0.25, 0.5],
                "late_s": [0.0, 0.012, 0.0],
                "pswpin": [256, 300, 768],
                "pswpout": [512, 10, 600],
                "pgpgin": [1024, 1024, 4096],
                "nr_writeback": [0, 1234, 5],
            }
        ),
        "kern.log": "[    1.0] <4> gitk: page allocation failure: order:2\n",
    }
    write_run(tmp_path / "6.1" / "1", files)
    text = " ".join(text_of(tmp_path).split())
    assert "gitk-1 was silent for 31.2 s at the worst; the two gitk's together" in text
    assert "stood still for 33.2 s" in text
    assert "gitk-1 31.4 3 31.4 1 31.2 1 31.2 31.2 0.1" in text
    assert "audio 1 skip, 1.9 s in all, the longest 1.9 s" in text
    assert "heartbeat 1 of 2 deadlines missed by more than 0.1 s, the worst by 8.900 s" in text
    assert "swap in 2.0 MiB, out not available" in text  # pswpout went back: no figure
    assert "page IO in 3.0 MiB, out not available" in text
    assert "nr_writeback 1,234 pages at the most" in text
    assert "1 page allocation failure, 0 OOM kills, 0 hung tasks" in text
    assert "16.6 MiB locked, 0.53 % of one CPU, latest sample 0.012 s late" in text
    assert "with care observer: x" in text
    assert "One run is a sign, not a finding." in text


def test_several_runs_begin_with_a_table_and_a_hang_is_one_of_them(tmp_path: Path) -> None:
    text = text_of(make_campaign(tmp_path / "c", 3, 2))
    head = text.split("\n\n")[1].splitlines()
    assert len(head) == 9 and head[0].startswith("variant")
    assert sum(" hung " in line for line in head) == 1
    assert "still silent when the machine was last heard" in " ".join(text.split())
    assert "sign, not a finding" not in text
    for word in ("better", "regress", "improve", "significant"):
        assert word not in text


def test_strangers_values_neither_break_a_line_nor_reach_the_terminal(tmp_path: Path) -> None:
    deep: dict[str, object] = {key: HOSTILE for key in ("cpu_model", "fs", "crypt", "label")}
    deep |= {"kernel": {"release": HOSTILE}, "parameters": {HOSTILE: HOSTILE, "n": 10**300}}
    deep |= {"cpus": 1e300, "mem_total_kib": float("nan"), "observers": [{"cpu_s": 1}, 3]}
    files: dict[str, str | bytes] = {
        "meta.json": json.dumps({**meta("x"), **deep}),
        "latency-gitk-1.log": line_log([(9_999_999.0, "x")], None),
        f"latency-{'z' * 150}.log": line_log([(0.1, "\x1b[31m")], 0.0),
    }
    for n in ("1", "2"):
        write_run(tmp_path / ("v" * 120) / n, files, "lost", why=HOSTILE)
    text = text_of(tmp_path)
    assert "\x1b" not in text and text.encode("utf-8")


def test_no_complete_run_is_an_error_of_one_line(tmp_path: Path) -> None:
    write_run(tmp_path / "k" / "1", {"meta.json": json.dumps(meta("k"))}, state=None)
    with pytest.raises(UserError, match=r"no run has a status.json: k/1"):
        summary(load_campaign(tmp_path))


def test_the_command_prints_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make_campaign(tmp_path / "c", 1)
    assert main([str(tmp_path / "c")]) == 0
    assert "gitk-4" in capsys.readouterr().out
