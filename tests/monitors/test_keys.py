# SPDX-License-Identifier: GPL-2.0-or-later
"""Keys pressed at real programs behind terminals: known delays, ends of programs, of the prober."""

import os
import re
import signal
import time
from pathlib import Path

import pytest

from analysis.figures.keys import key_figures
from measure import key_programs
from monitors.launch import KeysProcess
from monitors.streams import KeyProgram
from setup.observers import program
from tests.support import key_observers
from tests.support.kernel_logs import is_gone, parse, wait_for
from tests.support.key_observers import (
    LOG,
    children,
    faults,
    key_stream,
    keys_of,
    start_beside_stopped,
)

pytestmark = pytest.mark.clock
STEP_S, GAP_S = 0.5, 0.05
PROGRAMS = key_programs.in_terminals()
SHELL = PROGRAMS[:1]


def prober(
    folder: Path, typed_at: list[KeyProgram], step_s: float = STEP_S, gap_s: float = GAP_S
) -> KeysProcess:
    """An observer whose programs are ready."""
    return key_observers.prober(folder, typed_at, step_s=step_s, gap_s=gap_s)


def test_programs_that_are_idle_answer_at_once_and_take_turns(tmp_path: Path) -> None:
    found = prober(tmp_path, PROGRAMS)
    assert [one.name for one in PROGRAMS] == ["shell", "editor", "pager"]
    found.start(time.monotonic())
    time.sleep(STEP_S * 4.5)
    facts = found.stop()
    assert facts and facts["keys"] == facts["echoed"] == 12
    assert facts["observer"]["major_faults"] == 0
    keys = keys_of(tmp_path)
    assert [key.number for key in keys.keys] == list(range(1, 13)) and not keys.unread
    turns = [key.program for key in keys.keys[::3]]
    assert turns == ["shell", "editor", "pager", "shell"]
    figures = key_figures(keys)
    assert figures and figures.open == 0 and figures.worst.late < 0.05
    # Between the last key of one turn and the first of the next one.
    assert keys.keys[9].idle == pytest.approx(3 * STEP_S - 2 * GAP_S, abs=0.002)
    rows = parse((tmp_path / LOG).read_text())
    assert rows[-1][2] == "[end]"


def test_a_program_that_is_stopped_for_three_seconds_reads_three_seconds(tmp_path: Path) -> None:
    found = prober(tmp_path, SHELL)
    went_on = start_beside_stopped(found, children(found.pid)["bash"], STEP_S + 3.0) - STEP_S
    time.sleep(0.3)
    found.stop()
    first, second, third, *_ = keys_of(tmp_path).keys
    assert first.shown and first.late == pytest.approx(went_on, rel=0.03)
    # Each is timed from when it was due, not from when the one before it was shown.
    for key, after in ((second, GAP_S), (third, 2 * GAP_S)):
        assert key.late == pytest.approx(went_on - after, rel=0.03)


def test_a_key_that_is_not_shown_is_open(tmp_path: Path) -> None:
    found = prober(tmp_path, SHELL, step_s=0.3)
    os.kill(children(found.pid)["bash"], signal.SIGSTOP)
    found.start(time.monotonic())
    time.sleep(1.0)
    facts = found.stop()
    assert facts and facts["keys"] >= 3 and facts["echoed"] == 0
    keys = keys_of(tmp_path)
    assert not any(key.shown for key in keys.keys)
    end = key_stream(tmp_path).until
    for key in keys.keys:
        assert key.due + key.late == pytest.approx(end, abs=0.002)


def test_a_program_that_dies_gets_no_more_keys_and_the_others_do(tmp_path: Path) -> None:
    found = prober(tmp_path, PROGRAMS, step_s=0.3)
    found.start(time.monotonic())
    time.sleep(0.4)
    os.kill(children(found.pid)["busybox"], signal.SIGKILL)
    time.sleep(1.6)
    assert found.stop()
    keys = keys_of(tmp_path)
    (ended,) = keys.ended
    assert (ended.name, ended.status) == ("editor", -signal.SIGKILL)
    assert {key.program for key in keys.keys} == {"shell", "pager"}


def test_the_programs_end_with_a_prober_that_is_killed(tmp_path: Path) -> None:
    found = prober(tmp_path, PROGRAMS)
    found.start(time.monotonic())
    pids = children(found.pid).values()
    time.sleep(STEP_S + 0.2)
    os.kill(found.pid, signal.SIGKILL)
    assert found.stop() is None
    assert wait_for(lambda: all(is_gone(pid) for pid in pids), 10)


def test_a_program_that_echoes_no_letter_is_named_and_gets_none(tmp_path: Path) -> None:
    ends = KeyProgram("short", ["true"], {"PATH": os.environ["PATH"]})
    found = KeysProcess(program(), tmp_path, [ends, *SHELL], step_s=STEP_S, gap_s=GAP_S, priority=0)
    assert found.prepare() == ["short: true: it did not echo a letter"]
    found.start(time.monotonic())
    time.sleep(STEP_S * 2.5)
    found.stop()
    assert {key.program for key in keys_of(tmp_path).keys} == {"shell"}


def test_no_program_of_that_name(tmp_path: Path) -> None:
    none = KeyProgram("gone", ["/no/such/program"], {})
    found = KeysProcess(program(), tmp_path, [none], priority=0)
    assert found.prepare() == ["gone: /no/such/program: No such file or directory"]
    assert found.stop()


def test_ended_before_it_began(tmp_path: Path) -> None:
    found = prober(tmp_path, SHELL)
    assert found.stop()
    assert (tmp_path / LOG).read_text() == ""


def test_nothing_that_it_does_needs_a_page_that_it_does_not_have(tmp_path: Path) -> None:
    found = KeysProcess(program(), tmp_path, SHELL, step_s=0.2, gap_s=0.03, priority=20)
    problems = found.problems
    assert found.prepare() == []
    seen = []
    found.start(time.monotonic())
    for _ in range(2):
        seen.append(faults(found.pid))
        time.sleep(1.0)
    facts = found.stop()
    assert facts and facts["echoed"] > 9 and facts["observer"]["major_faults"] == 0
    if any(problem.startswith("ml") for problem in problems):
        pytest.skip(f"not permitted here: {problems}")
    assert seen[0] == seen[1]


def test_a_program_behind_a_terminal_is_an_ordinary_task(tmp_path: Path) -> None:
    found = KeysProcess(program(), tmp_path, SHELL, priority=20)
    assert found.prepare() == []
    (shell,) = children(found.pid).values()
    assert os.sched_getscheduler(shell) == os.SCHED_OTHER
    assert Path(f"/proc/{shell}/oom_score_adj").read_text() == "0\n"
    status = Path(f"/proc/{shell}/status").read_text()
    assert re.search(r"^VmLck:\s+0 kB$", status, re.MULTILINE)
    found.stop()
