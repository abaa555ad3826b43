# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs that their limit ends on a real kernel: one that went on, and one that did not."""

import dataclasses
import json
import re
from pathlib import Path

import pytest

from analysis.figures.metrics import failed, unfinished
from analysis.reading.load import load_campaign
from errors import Exit
from run.arguments import parse
from tests.support.vms import OWN_CLOCK, command, guest, nothing_left, run_in_vm

pytestmark = [pytest.mark.vm, pytest.mark.own_clock, pytest.mark.timeout(600)]
LIMIT_S = 20
ASKED = [*OWN_CLOCK, "--passes", "1000", "--timeout", str(LIMIT_S)]
LATE = f"gitk's were not done within {LIMIT_S} s"
RUN_S = 5  # how long the gitk's do, until they are stopped


def test_what_goes_on_is_unfinished_and_has_a_status_of_its_own(tmp_path: Path) -> None:
    guest(*ASKED)
    with nothing_left(), command(*ASKED, "--label", "x", "--out", str(tmp_path / "c")) as runner:
        printed, errors = runner.communicate(timeout=500)
    assert runner.returncode == Exit.UNFINISHED, errors
    (run,) = load_campaign(tmp_path / "c").runs
    assert unfinished(run) and not failed(run)
    status = json.loads((run.path / "status.json").read_text())
    assert status["state"] == "unfinished" and LATE in status["why"]
    assert all(stream.until >= LIMIT_S - 1 for stream in run.subjects)
    summary = (tmp_path / "c/report/summary.txt").read_text()
    assert re.search(rf"^ended +unfinished: the {LATE}", summary, re.MULTILINE), summary
    assert "unfinished" in printed


def test_what_does_not_go_on_is_hung(tmp_path: Path) -> None:
    run_dir = tmp_path / "c/x/1"
    state, why = run_in_vm(
        run_dir,
        dataclasses.replace(parse(ASKED), hang_after=8),
        ready=guest(*ASKED),
        label="x",
        program=f"python3 /suite/tests/guest/pressure_run.py {RUN_S} 0",
    )
    assert state == "hung", why
    assert LATE in why and "no line came in the last" in why
    (run,) = load_campaign(tmp_path / "c").runs
    assert failed(run) and not unfinished(run)
    assert all(stream.open_gap > LIMIT_S / 2 for stream in run.subjects)
