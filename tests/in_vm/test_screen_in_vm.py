# SPDX-License-Identifier: GPL-2.0-or-later
"""Keys in real windows in a guest: they are shown at once while there is memory to spare."""

import pytest

from analysis.figures.observer_faults import of_run
from analysis.reading.load import Run, load_campaign
from tests.support.vms import one_small_run

RUN_S = 900  # with a guest image to make first
pytestmark = [pytest.mark.vm, pytest.mark.own_clock, pytest.mark.timeout(RUN_S + 60)]
AT_ONCE_S = 0.05


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run with memory to spare, in which each window gets keys; its report is made."""
    out = tmp_path_factory.mktemp("screen") / "out"
    more = ("--screen", "--passes", "2", "--memory", "700M")
    one_small_run(out, "debian:6.12", "desktop", "", *more, within_s=RUN_S)
    (made,) = load_campaign(out).runs
    return made


def test_an_idle_editor_and_an_idle_gitk_show_letters_at_once(run: Run) -> None:
    assert run.state == "completed"
    assert run.window_keys
    programs = {key.program for key in run.window_keys.keys}
    assert programs == {"xterm", "gitk"}
    assert all(key.shown for key in run.window_keys.keys)
    assert max(key.late for key in run.window_keys.keys) < AT_ONCE_S


def test_idle_terminals_echo_at_once(run: Run) -> None:
    assert run.keys
    keys = run.keys.keys
    assert {key.program for key in keys} == {"shell", "editor", "pager"}
    assert all(key.shown for key in keys) and max(key.late for key in keys) < AT_ONCE_S


def test_the_prober_neither_faults_nor_is_late(run: Run) -> None:
    assert not of_run(run)
    reports = [event for event in run.events if event.get("name") == "keys"]
    assert reports and reports[0]["major_faults"] == 0
    assert "observer_problems" not in run.meta or not run.meta["observer_problems"]


def test_the_summary_has_a_line_of_them(run: Run) -> None:
    summary = (run.path.parents[1] / "report" / "summary.txt").read_text()
    assert "\nin windows " in summary
