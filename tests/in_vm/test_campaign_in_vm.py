# SPDX-License-Identifier: GPL-2.0-or-later
"""A campaign on real kernels: killed at random moments it ends as one that ran through."""

import contextlib
import json
import os
import random
import signal
import subprocess
import time
import tomllib
from pathlib import Path
from typing import Any

import pytest

from run.run_folders import numbered
from tests.support.vms import OWN_CLOCK, START_S, command, guest, nothing_left, processes, wait_for

KILLS = 2
KILL_WITHIN_S = 40.0  # of its start: a run takes some 40 s, so that this is in the first, or after
TINY = [*OWN_CLOCK, "--commits", "3000", "--gitk", "1", "--jobs", "1"]
PLAN = """
baseline = "plain"
[[variant]]
label = "plain"
[[variant]]
label = "turned"
append = "desktop_freeze_test=1"
[variant.knobs]
"/proc/sys/vm/swappiness" = 10
"/sys/block/{disk}/queue/scheduler" = "none"
"""
pytestmark = [pytest.mark.vm, pytest.mark.own_clock, pytest.mark.timeout(900)]


@pytest.fixture(scope="module", autouse=True)
def _ready() -> None:
    guest(*TINY)


def read(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def test_killed_at_random_moments_and_resumed(tmp_path: Path) -> None:
    seed = time.time_ns()
    print("seed", seed)
    rng = random.Random(seed)
    out, plan = tmp_path / "out", tmp_path / "plan.toml"
    plan.write_text(PLAN)
    argv = [*TINY, "--plan", str(plan), "--out", str(out)]
    again = [*argv, "--resume", str(out)]
    with nothing_left():
        for _ in range(KILLS):
            with command(*argv) as runner:
                assert wait_for(lambda: (out / "plan.toml").exists(), START_S)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    runner.communicate(timeout=rng.uniform(0, KILL_WITHIN_S))
                if runner.poll() is None:
                    os.killpg(runner.pid, signal.SIGKILL)
                runner.wait()
            assert wait_for(lambda: processes() == [], 10), processes()
            argv = again
        with command(*argv) as runner:
            printed, errors = runner.communicate(timeout=400)
        assert runner.returncode == 0, errors
        assert "Traceback" not in errors
    stored = tomllib.loads((out / "plan.toml").read_text())
    ran = [(run["variant"], run["number"]) for run in stored["run"] if "cut" not in run]
    assert ran == [("plain", 1), ("turned", 1)]
    assert (out / "report" / "summary.txt").read_text() in printed
    for label in ("plain", "turned"):
        runs = numbered(out / label)
        assert sorted(runs) == [1]
        for run in runs.values():
            assert read(run / "status.json")["state"] == "completed"
            meta = read(run / "meta.json")
            knobs = {knob["path"]: knob["read_back"] for knob in meta["knobs"]}
            if label == "plain":
                assert not knobs and "desktop_freeze_test" not in meta["cmdline"]
            else:
                assert knobs["/proc/sys/vm/swappiness"] == "10"
                assert any("[none]" in read_back for read_back in knobs.values())
                assert meta["cmdline"].endswith(" desktop_freeze_test=1")
    orders = [read(out / v / str(n) / "meta.json")["order"] for v, n in ran]
    assert orders == sorted(orders)


def test_a_knob_that_will_not_do_fails_the_run(tmp_path: Path) -> None:
    knob, said = (
        "/proc/sys/vm/swappiness=100000",
        "knob /proc/sys/vm/swappiness: the kernel refused",
    )
    out = tmp_path / "out"
    with (
        nothing_left(),
        command(*TINY, "--knob", knob, "--label", "x", "--out", str(out)) as runner,
    ):
        printed, errors = runner.communicate(timeout=200)
    assert runner.returncode == 3, errors
    assert said in printed
    status = read(out / "x" / "1" / "status.json")
    assert status["state"] == "aborted" and said in status["why"]
