# SPDX-License-Identifier: GPL-2.0-or-later
"""setup.crypt_lvm and run_test.sh --device on a loop file, in a guest, as root, for real."""

from pathlib import Path
from typing import Any

import pytest

from contract.run_record import read_events
from run.arguments import parse
from tests.guest.device_run import LINES
from tests.support.vms import OWN_CLOCK, guest, last_words, run_in_vm

pytestmark = [
    *(pytest.mark.vm, pytest.mark.own_clock, pytest.mark.slow),
    pytest.mark.timeout(1200),
]
STREAMS = ("gitk-1", "gitk-2", "player", "heartbeat")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str, str]:
    """One guest that runs tests/guest/device_run.py: the folder, state and why of its last run."""
    folder = tmp_path_factory.mktemp("device")
    state, why = run_in_vm(
        folder,
        parse(OWN_CLOCK),
        ready=guest(*OWN_CLOCK, "--fs", "xfs", "--swap", "zram"),  # as crypt_lvm_check.py needs it
        program="python3 /suite/tests/guest/device_run.py",
    )
    return folder, state, why


@pytest.fixture
def checked(run: tuple[Path, str, str]) -> dict[str, Any]:
    """The guest's `check` event."""
    events = read_events(run[0] / "events.jsonl")
    checks = [event for event in events if event["event"] == "check"]
    assert checks, last_words(run[0])
    return checks[0]


def test_crypt_lvm(checked: dict[str, Any]) -> None:
    assert checked["crypt_lvm"].startswith("ok ")


def test_a_loop_file(run: tuple[Path, str, str], checked: dict[str, Any]) -> None:
    folder, state, why = run
    assert checked["run_status"] == 0
    assert checked["left"] == {}
    assert state == "completed", why
    (used,) = {
        (event["swap"]["kind"], event["swap"]["size_kib"])
        for event in read_events(folder / "events.jsonl")
        if event["event"] == "meta" and "size_kib" in event.get("swap", {})
    }
    assert used[0] == "zram" and 0 < used[1] <= 64 << 10
    for stream in STREAMS:
        assert (folder / f"latency-{stream}.log").read_text().endswith(" [end]\n")


def test_sigterm_undoes_all_and_keeps_the_results(checked: dict[str, Any]) -> None:
    run = checked["terminated"]
    assert (run["exit"], run["left"]) == (130, {}), run["said"]
    assert run["status"] == [["aborted", "interrupted by SIGTERM"]]
    assert {"start", "stream-end", "end", "observer"} <= set(run["events"])
    assert run["events"][-2:] == ["status", "phase"]  # teardown
    assert all(run["lines"][stream] >= LINES for stream in STREAMS), run["lines"]
    assert run["samples"] > 3


def test_what_sigkill_leaves_is_undone_by_destroy(checked: dict[str, Any]) -> None:
    run = checked["killed"]
    assert run["exit"] == -9 and run["stack"], run["said"]
    assert (run["destroyed"], run["left"]) == (0, {})
    assert run["status"] == []
    assert "start" in run["events"]
    assert all(run["lines"][stream] >= LINES for stream in STREAMS), run["lines"]
    assert run["samples"] > 3
