# SPDX-License-Identifier: GPL-2.0-or-later
"""python3 -m analysis.runs: what a program that decides is told of a run."""

import json
from pathlib import Path

import pytest

from analysis.runs import main
from benchmarks.synthetic_results.make import line_log, meta, table, write_run

GAPS = [(0.05, "pass 1 commits 100"), (2.5, "pass 1 commits 200")]


def told(run: Path, capsys: pytest.CaptureFixture[str]) -> dict[str, object]:
    assert main([str(run)]) == 0
    found: dict[str, object] = json.loads(capsys.readouterr().out)
    return found


def files(**facts: object) -> dict[str, str | bytes]:
    logs: dict[str, str | bytes] = {
        f"latency-gitk-{n}.log": line_log(GAPS, 0.01) for n in range(1, 5)
    }
    rows: dict[str, list[float | int | None]] = {
        "elapsed_s": [0.0, 0.25],
        "late_s": [0.0, 0.0],
        "MemAvailable": [190_000, 180_000],
    }
    return {**logs, "meminfo.tsv": table(rows), "meta.json": json.dumps(meta("6.12", **facts))}


def test_a_run_that_ended(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = told(write_run(tmp_path / "6.12" / "1", files()), capsys)
    assert found["figure"] == pytest.approx(10.0)
    assert (found["began"], found["failed"], found["disturbed"]) == (True, False, None)
    assert found["mem_available_kib"] == 190_000


def test_a_run_that_failed_has_no_figure(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = told(write_run(tmp_path / "6.12" / "1", files(), "hung"), capsys)
    assert (found["state"], found["failed"], found["figure"]) == ("hung", True, None)


def test_a_kernel_that_did_not_boot_did_not_begin(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    facts = json.dumps({"format": 1, "label": "6.12"})
    run = write_run(tmp_path / "6.12" / "1", {"meta.json": facts}, "panicked")
    assert told(run, capsys)["began"] is False


def test_observers_that_were_disturbed_are_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    late = [{"name": "recorder", "major_faults": 3}, {"name": "sampler"}]
    found = told(write_run(tmp_path / "6.12" / "1", files(observers=late)), capsys)
    assert found["disturbed"] == "recorder had 3 major faults"
