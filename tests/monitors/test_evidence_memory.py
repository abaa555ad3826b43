# SPDX-License-Identifier: GPL-2.0-or-later
"""Under load the third observer takes no memory: whoever asks for some then waits in reclaim."""

import contextlib
import os
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from monitors.beacon import Beacon
from monitors.launch import EvidenceProcess
from setup.observers import program
from tests.support.evidence_parts import Parts
from tests.support.kernel_logs import python, state_of, wait_for, whole_lines
from tests.support.key_observers import faults

pytestmark = pytest.mark.clock

MOST_FAULTS = 4
STREAMS = ("stopped", "bomb-1", "bomb-2", "bomb-3", "forking")
STILL = ["sleep", "1000"]
BOMB = ["sh", "-c", "for n in $(seq 100); do sleep 1000 & done; wait"]
FORKING = ["sh", "-c", "while :; do sleep 0.1 & sleep 0.05; done"]
SLEEPERS = """\
import ctypes, os
libc = ctypes.CDLL(None)
for n in range(80):
    if not os.fork():
        libc.vfork() or libc.pause()
libc.pause()
"""


@contextlib.contextmanager
def started(command: list[str]) -> Iterator["subprocess.Popen[bytes]"]:
    """A group of processes."""
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True)
    try:
        yield child
    finally:
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()


def children(pid: int) -> list[int]:
    text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return [int(word) for word in text.split()]


def make_noise(stack: contextlib.ExitStack, beacon: Beacon) -> None:
    """Streams that are silent, with many tasks or with ever new ones, and much in state D."""

    def start(command: list[str]) -> "subprocess.Popen[bytes]":
        return stack.enter_context(started(command))

    stopped, *bombs, forking = [start(one) for one in (STILL, BOMB, BOMB, BOMB, FORKING)]
    sleepers = start(python(SLEEPERS))
    stopped.send_signal(signal.SIGSTOP)
    for bomb in bombs:
        wait_for(lambda pid=bomb.pid: len(children(pid)) == 100)  # type: ignore[misc]
    for slot, child in enumerate((stopped, *bombs, forking)):
        beacon.began(slot, child.pid, time.monotonic_ns())
    wait_for(lambda: [state_of(pid) for pid in children(sleepers.pid)].count("D") == 80)


def test_nothing_is_taken_under_load(tmp_path: Path) -> None:
    beacon = Beacon(list(STREAMS))
    evidence = EvidenceProcess(
        program(), tmp_path, beacon, {}, priority=20, live_lock_s=180.0, finite=STREAMS
    )
    if any(problem.startswith("mlock") for problem in evidence.problems):
        evidence.stop()
        beacon.close()
        pytest.skip(f"not permitted here: {evidence.problems}")
    blocked = tmp_path / "blocked.tsv"
    with contextlib.ExitStack() as stack:
        stack.callback(beacon.close)
        stack.callback(lambda: evidence.alive() and evidence.stop())
        evidence.start(time.monotonic())
        time.sleep(1.0)
        before = faults(evidence.pid)[0]
        make_noise(stack, beacon)
        wait_for(lambda: whole_lines(blocked).count("\tstopped\t") >= 9)
        assert faults(evidence.pid)[0] - before <= MOST_FAULTS
        facts = evidence.stop()
    assert facts and facts["dropped"] == {} and facts["problems"] == []
    # It was a load: more rows at once than are handed over at once, and each of them is whole.
    header, *rows = [line.split("\t") for line in blocked.read_text().splitlines()]
    assert {len(row) for row in rows} == {len(header)}
    moments = Counter(row[0] for row in rows)
    assert max(moments.values()) > 3 * 64 + 20
    size = max(sum(len("\t".join(row)) for row in rows if row[0] == at) for at in moments)
    # Stacks, half of each row, are root's to read.
    assert size > (24 if os.geteuid() == 0 else 12) * 1024


def test_rows_are_handed_over_before_they_need_more_memory() -> None:
    with Parts() as parts:
        before = parts.numbers("allocations")
        assert parts("rows", 3, 100) == "300"
        assert parts.numbers("rows", 100, 600) == [21 * 600] * 4 + [16 * 600]
        assert parts.numbers("rows", 3, 6000) == [3 * 6000]
        assert parts.numbers("rows", 4, 20_000) == [20_000] * 4
        assert parts("rows", 0, 1) == ""
        assert parts.numbers("allocations") == before


def test_tasks_come_and_go_without_an_allocation() -> None:
    with started(BOMB) as bomb, started(FORKING) as forking, Parts() as parts:
        wait_for(lambda: len(children(bomb.pid)) == 100)
        parts("sleepers", 400)
        before = parts.numbers("allocations")
        (open_before,) = parts.numbers("fds")
        for _ in range(5):  # more than there are in hand
            parts("follow", bomb.pid)
            assert len(parts("refresh").split()) == 64
            for pid in children(bomb.pid)[:5]:  # others take their places
                os.kill(pid, signal.SIGKILL)
            wait_for(lambda: len(parts("refresh").split()) == 64)
            parts("follow", forking.pid)
            for _ in range(5):
                assert parts("refresh")
                time.sleep(0.05)
            parts("follow", 0)
        parts("sleep", time.monotonic())
        assert parts.numbers("allocations") == before
        parts("sleepers", 0)
        assert parts.numbers("fds")[0] <= open_before
