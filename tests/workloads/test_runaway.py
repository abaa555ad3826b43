# SPDX-License-Identifier: GPL-2.0-or-later
"""The runaway: what it eats, who ends it, and when the desktop answers again."""

import json
import mmap
import os
import signal
import struct
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.figures.workload_tables import of_run
from analysis.reading.load import load_campaign
from benchmarks.synthetic_results.make import line_log, meta, write_run
from contract.command_line import parse_measured
from contract.run_files import COMPLETED, OOM
from errors import UserError
from measure import machine_facts, outcome
from run.arguments import parse
from workloads import runaway_load
from workloads.load_output import SCOPE
from workloads.registry import find
from workloads.runaway import WORKLOAD

QUICK = parse(["--workload", "runaway", "--profile", "quick"])


def beats(late: list[float]) -> str:
    """A heartbeat's log: a line due each 0.1 s, printed when it is."""
    at, rows = 0.0, []
    for n, one in enumerate(late):
        due = n * 0.1
        now = max(at, due + one)
        rows.append((now - at, f"beat {n} late {now - due:.3f}"))
        at = now
    return line_log(rows, 0.0)


def run_of(folder: Path, *late: list[float], began: float = 17.5) -> dict[str, float]:
    """The figures of a run whose windows were so late; t0 is 12.5 s, the eating begins at 5 s."""
    figures = {"at-eating-begin": began, "eaten-mib": 200.0, "lived": 3.0, "gave-up": 0.0}
    told: dict[str, Any] = {"workload": WORKLOAD.describe(QUICK).as_meta(), "figures": figures}
    files: dict[str, str | bytes] = {"meta.json": json.dumps(meta("v") | told)}
    files |= {f"latency-heartbeat-{n}.log": beats(each) for n, each in enumerate(late, 1)}
    write_run(folder / "v" / "1", files)
    (run,) = load_campaign(folder).runs
    tables = of_run(run, run.workload.tables)
    return {key: run.figures[key] for key in run.figures if key == "answer"} | tables


def test_the_desktop_answers_when_its_last_window_does(tmp_path: Path) -> None:
    idle, frozen = [0.0] * 300, [0.0] * 300
    frozen[100] = 8.0  # due at 10.0 s, there at 18.0 s; those behind it catch up at once
    found = run_of(tmp_path / "a", idle, frozen, idle)
    # Lines that were due up to 17.0 s are late by 1 s or more, and come at 18.0 s: 13 s after 5 s.
    assert found["answer"] == pytest.approx(13.0, abs=0.01)
    assert found["eaten-mib"] == 200 and found["gave-up"] == 0
    assert run_of(tmp_path / "b", idle, idle)["answer"] == 0


def test_without_the_moment_nothing_is_claimed(tmp_path: Path) -> None:
    folder = tmp_path / "v" / "1"
    told: dict[str, Any] = {"workload": WORKLOAD.describe(QUICK).as_meta(), "figures": {}}
    write_run(folder, {"meta.json": json.dumps(meta("v") | told), "latency-heartbeat-1.log": ""})
    (run,) = load_campaign(tmp_path).runs
    assert "answer" not in run.figures


@pytest.mark.parametrize("killed", [True, False])
def test_it_is_watched_to_its_end(killed: bool, capfd: pytest.CaptureFixture[str]) -> None:
    eaten = mmap.mmap(-1, mmap.PAGESIZE)
    eaten[:8] = struct.pack("Q", 7)
    child = os.fork()
    if not child:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        time.sleep(60)
        os._exit(0)
    if killed:
        os.kill(child, signal.SIGTERM)
    found = runaway_load.watch(child, eaten, 0.3 if not killed else 30.0)
    assert (found["gave-up"], found["eaten-mib"]) == (float(not killed), 7)
    assert found["at-eating-end"] - found["at-eating-begin"] == pytest.approx(found["lived"])
    assert (found["lived"] >= 0.3) == (not killed) or killed


def test_the_runaway_leaves_the_scope_of_what_watches_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(SCOPE, str(tmp_path / "runaway.scope"))
    runaway_load.move_to_own_scope()
    assert (tmp_path / "eater.scope" / "cgroup.procs").read_text() == "0"  # the writer itself
    monkeypatch.delenv(SCOPE)
    runaway_load.move_to_own_scope()
    assert [path.name for path in tmp_path.iterdir()] == ["eater.scope"]


def test_the_kernels_kill_of_it_is_no_failure_and_that_of_a_window_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(machine_facts, "counter", lambda name: 4)
    recorded: dict[str, Any] = {"outcome": "done", "ends": {"runaway": 0}, "early": {}}
    assert outcome.judged(QUICK, WORKLOAD, recorded, 3)[0] == COMPLETED
    recorded["early"] = {"heartbeat-2": "beat 7 late 0.000"}
    recorded["ends"] = {"runaway": 0, "heartbeat-2": -signal.SIGKILL}
    assert outcome.judged(QUICK, WORKLOAD, recorded, 3)[0] == OOM
    # Of a desktop each kill is one.
    desktop = {"outcome": "done", "ends": {"gitk-1": 0}, "early": {}}
    assert outcome.judged(parse([]), find("desktop"), desktop, 3)[0] == OOM


@given(st.text(max_size=8))
def test_any_patience_is_read_or_refused_in_one_line(text: str) -> None:
    try:
        WORKLOAD.completed(f"patience={text}", "quick")
    except UserError as error:
        assert "\n" not in str(error).replace(text, "")


def test_a_daemon_that_asks_a_window_to_end_has_killed_it() -> None:
    argv = ["--bare", "--run-dir", "r", "--device", "d", "--music", "m"]
    argv += ["--workload", "runaway", "--daemon", "earlyoom -r 3600"]
    daemon = parse_measured(argv, {})
    recorded: dict[str, Any] = {
        "outcome": "done",
        "ends": {"runaway": 0, "heartbeat-1": 0, "player": 0},
        "early": {"heartbeat-1": "missed 3"},
    }
    options = replace(QUICK, variants=daemon.variants)
    assert outcome.killed_by_daemon(options, recorded, {"runaway"}) == ["heartbeat-1"]
    recorded["ends"]["heartbeat-1"] = 1  # a fault of its own
    assert outcome.killed_by_daemon(options, recorded, {"runaway"}) == []
    recorded["ends"]["heartbeat-1"] = 0
    assert outcome.killed_by_daemon(QUICK, recorded, {"runaway"}) == []
