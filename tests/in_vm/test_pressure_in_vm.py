# SPDX-License-Identifier: GPL-2.0-or-later
"""One run on a real kernel: an atomic load under pressure, what failed in it, and a live-lock."""

import json
import re
from pathlib import Path

import pytest

from analysis.figures import failed_allocations
from analysis.figures.echo import echoes
from analysis.reading.load import Run, load_campaign
from graphs.report import make_report
from run.arguments import parse
from tests.support.vms import COUNTED, guest, run_in_vm

pytestmark = [pytest.mark.vm, pytest.mark.own_clock, pytest.mark.timeout(900)]
RECORDS = 20  # warnings a second
PRESSED_S = 30  # from when the gitk's are there until they are stopped
ASKED = [
    *("--kernel", "debian:6.1", "--profile", "quick", "--accel", "tcg", "--machine", "host"),
    *("--memory", "160M", *COUNTED),
    *("--commits", "20000", "--passes", "100", "--timeout", "300", "--live-lock-after", "10"),
    *("--atomic-order", "2", "--atomic-rate", "1000"),
    *("--knob", "/proc/sys/vm/min_free_kbytes=64"),
]
PROGRAM = f"python3 /suite/tests/guest/pressure_run.py {PRESSED_S} {RECORDS}"


@pytest.fixture(scope="module")
def campaign(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of that run, with its report."""
    folder = tmp_path_factory.mktemp("pressure")
    run_dir = folder / "6.1" / "1"
    run_in_vm(run_dir, parse(ASKED), ready=guest(*ASKED), label="6.1", program=PROGRAM)
    make_report(load_campaign(folder), folder / "report")
    return folder


@pytest.fixture(scope="module")
def run(campaign: Path) -> Run:
    """It, loaded."""
    return load_campaign(campaign).runs[0]


def test_a_live_lock_ends_the_run_and_says_why(run: Run) -> None:
    assert run.state == "hung", run.status
    said = re.fullmatch(
        r"live-lock: 0 lines of what should end in (\d+) s, while the kernel scanned \d+ pages a"
        r" second, took \d+ of them, and its log got (\d+) warnings",
        str(run.status["why"]),
    )
    assert said, run.status
    assert int(said[1]) >= 10 and int(said[2]) >= 50
    assert all(gitk.open_gap >= 10 for gitk in run.subjects)


def test_echoes_are_what_they_claim_and_are_counted(run: Run) -> None:
    atomic = run.meta["atomic"]
    assert (atomic["order"], atomic["rate"], atomic["checked"]) == (2, 1000, "yes")
    assert 0.9 <= atomic["per_echo"] <= 1.1
    found = echoes(run)
    assert found is not None and found.sent > 200 and 0 <= found.lost < found.sent
    assert run.meta["parameters"]["atomic_order"] == 2


def test_the_report_tells_what_the_log_does_not(campaign: Path, run: Run) -> None:
    found = failed_allocations.look(run)
    assert found.problems == [] and found.logged is not None and found.happened is not None
    assert found.silent and found.happened > found.logged
    attached = (run.path / "allocation-failures.log").read_text()
    assert attached.startswith(f"page allocation failures: {found.words()}\n")
    assert attached.count("page allocation failure: order:") == found.logged
    for one in found.silent:
        assert f"order:{one.order} mode:{one.gfp:#x}({one.flags})" in attached
    summary = " ".join((campaign / "report" / "summary.txt").read_text().split())
    assert f"page allocation failures: {found.words()}" in summary
    names = json.loads((run.path / "meta.json").read_text())["evidence"]["gfp_flags"]
    assert names["__GFP_NOWARN"].bit_count() == 1
