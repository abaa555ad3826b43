# SPDX-License-Identifier: GPL-2.0-or-later
"""QEMU's main loop is delayed by the CPU time of the CPU's thread, never by the host's time."""

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.support.library_drivers import compiled

LONGEST_S, AGAIN_S = 1.0, 0.05  # main_loop.c, LONGEST_NS and AGAIN_NS
STOPPED_S = 1.5  # longer than LONGEST_S, and than the thread spins
DEADLINE_S = 120  # after the driver's own


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(tmp_path_factory.mktemp("main_loop"), "main_loop_driver", "main_loop")


def when_ppoll_returned(program: Path, scenario: str) -> tuple[bool, float]:
    """Whether the CPU's thread waited for the main loop, and its CPU time during the call."""
    done = subprocess.run([program, scenario], capture_output=True, text=True, timeout=DEADLINE_S)
    assert done.returncode == 0, done.stderr
    return parsed(done.stdout)


def parsed(text: str) -> tuple[bool, float]:
    waits, used_ns = text.split()
    return waits == "1", int(used_ns) / 1e9


def test_time_in_which_the_cpu_could_not_run_does_not_count(program: Path) -> None:
    with subprocess.Popen([program, "stopped"], stdout=subprocess.PIPE, text=True) as process:
        try:
            os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
            time.sleep(STOPPED_S)
            process.send_signal(signal.SIGCONT)
            text, _ = process.communicate(timeout=DEADLINE_S)
        finally:
            process.kill()
    assert process.returncode == 0
    waits, _ = parsed(text)
    assert waits


def test_a_cpu_that_never_waits_delays_the_main_loop_for_a_second_of_its_time(
    program: Path,
) -> None:
    waits, used_s = when_ppoll_returned(program, "spins")
    assert not waits
    assert LONGEST_S <= used_s < 5 * LONGEST_S


def test_a_cpu_that_still_has_not_waited_delays_it_for_less(program: Path) -> None:
    waits, used_s = when_ppoll_returned(program, "spins-on")
    assert not waits
    assert AGAIN_S <= used_s < LONGEST_S


def test_a_cpu_that_waits_for_the_hosts_disk_is_waited_for(program: Path) -> None:
    waits, _ = when_ppoll_returned(program, "disk")
    assert waits


def test_a_cpu_that_was_woken_does_not_count_as_waiting(program: Path) -> None:
    waits, _ = when_ppoll_returned(program, "woken")
    assert waits  # again, after it has run


def test_nothing_is_waited_for_with_qemus_lock_held(program: Path) -> None:
    waits, used_s = when_ppoll_returned(program, "holds")
    assert not waits
    assert used_s < LONGEST_S / 2


def test_the_cpu_of_a_stopped_vm_is_not_waited_for(program: Path) -> None:
    waits, used_s = when_ppoll_returned(program, "not-running")
    assert not waits
    assert used_s < LONGEST_S


def test_a_cpu_that_has_ended_is_not_waited_for(program: Path) -> None:
    when_ppoll_returned(program, "ended")
