# SPDX-License-Identifier: GPL-2.0-or-later
"""Keys pressed at real windows of a real X server: known delays, until the pixels are there."""

import os
import resource
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from analysis.figures.keys import key_figures
from analysis.reading.keys import Keys
from measure import key_programs
from monitors.launch import KeysProcess
from monitors.streams import KeyProgram
from run.arguments import parse
from setup.observers import program
from tests.support import key_observers
from tests.support.kernel_logs import is_gone, wait_for
from tests.support.key_observers import children, faults, keys_of, start_beside_stopped
from workloads import desktop, x_server
from workloads.workload import SCREEN_PACKAGES, WorkloadEnvironment

pytestmark = [
    pytest.mark.clock,
    pytest.mark.skipif(
        not all(map(shutil.which, SCREEN_PACKAGES.values())), reason="no Xvfb, xterm or gitk here"
    ),
]
STEP_S, GAP_S = 1.0, 0.1
SHOWN_AT_ONCE_S = 0.15
LOCKED_BYTES = 64 << 20  # what the observer may need, with its pictures
MUTE = "stty -echo; exec sleep 1000"  # else the terminal itself shows letters


@pytest.fixture
def windows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[KeyProgram]]:
    """An editor and a gitk that can be started in an X server."""
    monkeypatch.setattr(x_server, "DISPLAY", f":{3_000 + os.getpid() % 10_000}")
    environment = WorkloadEnvironment(tmp_path, "vda", tmp_path / "figures")
    clone = tmp_path / desktop.CLONE
    subprocess.run(["git", "init", "-q", str(clone)], check=True)
    for message in "first", "second", "third":
        command = ["git", "-C", str(clone), "-c", "user.name=n", "-c", "user.email=n@example.org"]
        subprocess.run([*command, "commit", "-q", "--allow-empty", "-m", message], check=True)
    with x_server.running(x_server.key_file(environment), waiting=True):
        yield key_programs.in_windows(parse(["--screen", "--profile", "quick"]), environment)


def prober(folder: Path, typed_at: list[KeyProgram], priority: int = 0) -> KeysProcess:
    """An observer whose windows are there."""
    return key_observers.prober(folder, typed_at, step_s=STEP_S, gap_s=GAP_S, priority=priority)


def lates(keys: Keys, name: str) -> list[float]:
    return [key.late for key in keys.keys if key.program == name]


def test_idle_windows_show_letters_at_once_and_take_turns(
    windows: list[KeyProgram], tmp_path: Path
) -> None:
    most, _ = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    if os.geteuid() and 0 <= most < LOCKED_BYTES:
        pytest.skip(f"this user may lock {most >> 20} MiB: too few for the pictures of letters")
    observer = prober(tmp_path, windows, priority=20)
    observer.start(time.monotonic())
    time.sleep(STEP_S * 0.5)
    before = faults(observer.pid)
    time.sleep(STEP_S * 6)
    after = faults(observer.pid)
    facts = observer.stop()
    assert facts and facts["keys"] == facts["echoed"] >= 15
    keys = keys_of(tmp_path)
    assert [key.program for key in keys.keys[:15:3]] == ["xterm", "gitk", "xterm", "gitk", "xterm"]
    figures = key_figures(keys)
    assert figures and figures.open == 0 and figures.worst.late < SHOWN_AT_ONCE_S
    if any(problem.startswith("ml") for problem in observer.problems):
        pytest.skip(f"not permitted here: {observer.problems}")
    # Nothing that it does needs a page that it does not have.
    assert before == after


@pytest.mark.parametrize("name", ["xterm", "wish"])
def test_a_window_whose_program_is_stopped_shows_its_keys_when_it_goes_on(
    windows: list[KeyProgram], tmp_path: Path, name: str
) -> None:
    shown = "gitk" if name == "wish" else name
    observer = prober(tmp_path, [window for window in windows if window.name == shown])
    stopped = children(observer.pid)[name]
    went_on = start_beside_stopped(observer, stopped, STEP_S + 2.7) - STEP_S
    time.sleep(1.9)  # between two turns
    observer.stop()
    keys = keys_of(tmp_path)
    assert all(key.shown for key in keys.keys) and len(keys.keys) >= 12
    # Each is timed from when it was due: nine keys of three turns wait, until it goes on.
    offsets = [turn * STEP_S + key * GAP_S for turn in range(3) for key in range(3)]
    for late, offset in zip(lates(keys, shown), offsets, strict=False):
        assert late == pytest.approx(went_on - offset, abs=SHOWN_AT_ONCE_S)
    assert max(lates(keys, shown)[9:]) < SHOWN_AT_ONCE_S


def test_an_x_server_that_is_stopped_keeps_all_windows_waiting(
    windows: list[KeyProgram], tmp_path: Path
) -> None:
    observer = prober(tmp_path, windows)
    server = children(os.getpid())["Xvfb"]
    went_on = start_beside_stopped(observer, server, 2 * STEP_S + 2.6)
    time.sleep(1.0)
    facts = observer.stop()
    assert facts and facts["echoed"] == facts["keys"]
    keys = keys_of(tmp_path)
    assert lates(keys, "xterm")[0] == pytest.approx(went_on - STEP_S, abs=SHOWN_AT_ONCE_S)
    assert lates(keys, "gitk")[0] == pytest.approx(went_on - 2 * STEP_S, abs=SHOWN_AT_ONCE_S)


def test_a_key_that_no_window_shows_is_open(windows: list[KeyProgram], tmp_path: Path) -> None:
    observer = prober(tmp_path, windows[:1])
    os.kill(children(observer.pid)["xterm"], signal.SIGSTOP)
    observer.start(time.monotonic())
    time.sleep(STEP_S * 10.5)
    facts = observer.stop()
    # More than a line has places for are not pressed.
    assert facts and (facts["keys"], facts["echoed"]) == (24, 0)
    assert not any(key.shown for key in keys_of(tmp_path).keys)


def kill_after_half_a_step(observer: KeysProcess, pid: int) -> None:
    """Start the observer, and kill that process before the first key is due."""
    observer.start(time.monotonic())
    time.sleep(STEP_S * 0.5)
    os.kill(pid, signal.SIGKILL)


def test_a_window_that_is_closed_gets_no_more_keys_and_the_other_does(
    windows: list[KeyProgram], tmp_path: Path
) -> None:
    observer = prober(tmp_path, windows)
    kill_after_half_a_step(observer, children(observer.pid)["xterm"])
    time.sleep(STEP_S * 4)
    gitk = children(observer.pid)["wish"]
    assert observer.stop()
    assert wait_for(lambda: is_gone(gitk), 10)
    keys = keys_of(tmp_path)
    (ended,) = keys.ended
    assert (ended.name, ended.status) == ("xterm", -signal.SIGKILL)
    assert {key.program for key in keys.keys} == {"gitk"}


def test_programs_without_a_window_or_letters_are_named_and_get_no_keys(
    windows: list[KeyProgram], tmp_path: Path
) -> None:
    xterm = windows[0]
    ends = replace(xterm, name="ends", argv=["false"])
    silent = replace(xterm, name="silent", argv=[*xterm.argv[:-2], "sh", "-c", MUTE], before="")
    observer = KeysProcess(
        program(), tmp_path, [ends, silent, xterm], step_s=STEP_S, gap_s=GAP_S, priority=0
    )
    begin = time.monotonic()
    assert observer.prepare() == [
        "ends: it did not show a window",
        "silent: its window does not show letters that can be told apart",
    ]
    # Each is known to have failed long before the runner's patience ends.
    assert time.monotonic() - begin < 90
    observer.start(time.monotonic())
    time.sleep(STEP_S * 3.5)
    assert observer.stop()
    keys = keys_of(tmp_path)
    assert {key.program for key in keys.keys} == {"xterm"} and not keys.ended


def test_an_x_server_that_is_killed_ends_the_windows_and_not_the_observer(
    windows: list[KeyProgram], tmp_path: Path
) -> None:
    observer = prober(tmp_path, windows)
    kill_after_half_a_step(observer, children(os.getpid())["Xvfb"])
    time.sleep(STEP_S * 2)
    facts = observer.stop()
    assert facts and facts["observer"]["major_faults"] == 0
    assert {ended.name for ended in keys_of(tmp_path).ended} == {"xterm", "gitk"}


def test_an_observer_that_is_killed_leaves_no_window_and_no_memory(
    windows: list[KeyProgram], tmp_path: Path
) -> None:
    observer = prober(tmp_path, windows)
    pids = [children(observer.pid)[name] for name in ("xterm", "wish")]
    os.kill(observer.pid, signal.SIGKILL)
    observer.stop()
    server = children(os.getpid())["Xvfb"]
    os.kill(server, signal.SIGTERM)
    assert wait_for(lambda: all(map(is_gone, [*pids, server])), 30)
    creators = [line.split()[4] for line in Path("/proc/sysvipc/shm").read_text().splitlines()[1:]]
    assert str(observer.pid) not in creators


def test_without_an_x_server_a_window_is_named_and_the_others_get_keys(tmp_path: Path) -> None:
    environment = WorkloadEnvironment(tmp_path, "vda", tmp_path / "figures")
    none = key_programs.in_windows(parse(["--screen"]), environment)
    observer = KeysProcess(program(), tmp_path, none, priority=0)
    assert observer.not_available == [
        f"{one.name}: no window: its XAUTHORITY names no file with an entry" for one in none
    ]
    assert observer.stop()
