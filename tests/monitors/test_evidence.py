# SPDX-License-Identifier: GPL-2.0-or-later
"""The third observer on this machine's own processes: what it sees of them, when, and who tells it.

Nothing is traced here: tests/in_vm/test_run_in_vm.py has the whole of it, in a guest.
"""

import contextlib
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contract.run_record import Events
from monitors.beacon import WORDS, Beacon
from monitors.launch import EvidenceProcess, RecorderProcess
from monitors.streams import Stream
from setup.observers import program
from tests.support.evidence_parts import Parts
from tests.support.kernel_logs import TICKING, python, state_of, wait_for, whole_lines

pytestmark = pytest.mark.clock

TREE = """\
import subprocess, sys, threading
threading.Thread(target=sys.stdin.read).start()
child = subprocess.Popen(["sleep", "1000"])
print(child.pid, flush=True)
"""
NAMED = """\
import sys
open("/proc/self/comm", "wb").write(b"a)\\n(\\xff\\\\) R\\t1")
print(flush=True)
sys.stdin.read()
"""
Rows = list[dict[str, str]]


@pytest.fixture(scope="module")
def parts() -> Iterator[Parts]:
    with Parts() as found:
        yield found


def rows_of(path: Path) -> Rows:
    """A table's rows by its columns."""
    header, *rows = whole_lines(path).splitlines()
    columns = header.split("\t")
    return [dict(zip(columns, row.split("\t"), strict=True)) for row in rows]


@contextlib.contextmanager
def waiting_child() -> Iterator["subprocess.Popen[bytes]"]:
    """A program that waits for a line."""
    child = subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
    try:
        yield child
    finally:
        child.kill()
        child.wait()


@contextlib.contextmanager
def sleeping_child() -> Iterator["subprocess.Popen[bytes]"]:
    """A program that sleeps uninterruptibly: its child of vfork() never goes on."""
    code = "import ctypes; libc = ctypes.CDLL(None); libc.vfork() or libc.pause()"
    child = subprocess.Popen([sys.executable, "-c", code], start_new_session=True)
    try:
        # With a child: before that it may be in state D for what it reads from the disk.
        children = Path(f"/proc/{child.pid}/task/{child.pid}/children")
        wait_for(lambda: children.read_text() and state_of(child.pid) == "D")
        yield child
    finally:
        with contextlib.suppress(ProcessLookupError):  # a test has ended it, and init its child
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()


@contextlib.contextmanager
def observed(
    folder: Path, beacon: Beacon, hz: float = 4.0, priority: int = 0
) -> Iterator[EvidenceProcess]:
    """Evidence about the beacon's streams, from now on."""
    evidence = EvidenceProcess(program(), folder, beacon, {}, hz=hz, priority=priority, trace=False)
    try:
        evidence.start(time.monotonic())
        yield evidence
    finally:
        if evidence.alive():
            evidence.stop()
        beacon.close()


def pid_and_last(beacon: Beacon, slot: int) -> tuple[int, int]:
    """What a beacon shows of one stream: its pid, and when its last line came (ns)."""
    pid, last, _ = beacon.state()[WORDS * slot : WORDS * (slot + 1)]
    return pid, last


def test_a_stopped_program_is_seen_with_where_it_waits(tmp_path: Path) -> None:
    beacon = Beacon(["a"])
    with waiting_child() as child, observed(tmp_path, beacon) as evidence:
        child.send_signal(signal.SIGSTOP)
        wait_for(lambda: state_of(child.pid) == "T")
        beacon.began(0, child.pid, time.monotonic_ns())
        wait_for(lambda: whole_lines(tmp_path / "blocked.tsv").count("\ta\t") >= 2)
        facts = evidence.stop()
    assert facts and facts["looks"] >= 2
    stopped = [row for row in rows_of(tmp_path / "blocked.tsv") if row["stream"] == "a"]
    for row in stopped:
        assert (row["pid"], row["comm"], row["state"]) == (str(child.pid), "cat", "T")
        assert float(row["silent_s"]) >= 0.5
    if "/proc/PID/stack" in evidence.not_available:
        pytest.skip("/proc/PID/stack needs root: where it waits was not seen")
    for row in stopped:
        assert "do_signal_stop" in row["stack"].split(" <- ")
        assert row["stack"].split(" <- ")[0] == row["wchan"]
    samples = [row for row in rows_of(tmp_path / "tasks.tsv") if row["stream"] == "a"]
    assert {row["state"] for row in samples} == {"T"}


def test_a_silent_stream_is_sampled_at_each_tick_and_one_that_prints_is_not(tmp_path: Path) -> None:
    beacon = Beacon(["silent", "printing", "never-begun"])
    with (
        waiting_child() as silent,
        waiting_child() as printing,
        observed(tmp_path, beacon, hz=20.0) as evidence,
    ):
        for slot, child in enumerate((silent, printing)):
            beacon.began(slot, child.pid, time.monotonic_ns())
        until = time.monotonic() + 2.5
        lines = 0
        while time.monotonic() < until:
            beacon.said(1, time.monotonic_ns(), lines := lines + 1)
            time.sleep(0.02)
        facts = evidence.stop()
    assert facts
    found = [row["stream"] for row in rows_of(tmp_path / "tasks.tsv")]
    assert "never-begun" not in found
    # 20 a second against one; but a machine that halts for a moment makes each stream silent.
    assert found.count("silent") > 2 * found.count("printing") >= 4
    looks = [row["stream"] for row in rows_of(tmp_path / "blocked.tsv")]
    assert looks.count("silent") > looks.count("printing")


def test_the_end_of_a_silence_has_a_sample_of_its_own(tmp_path: Path) -> None:
    beacon = Beacon(["a"])
    with waiting_child() as child:
        beacon.began(0, child.pid, time.monotonic_ns())
        with observed(tmp_path, beacon, hz=0.02) as evidence:
            # One tick at once, and the next in 50 s.
            wait_for(lambda: whole_lines(tmp_path / "tasks.tsv").count("\ta\t") == 1)
            time.sleep(1.1)
            beacon.said(0, time.monotonic_ns(), 1)
            wait_for(lambda: whole_lines(tmp_path / "tasks.tsv").count("\ta\t") == 2)
            time.sleep(0.6)
            beacon.said(0, time.monotonic_ns(), 2)  # too short a silence for that
            facts = evidence.stop()
    assert facts and facts["samples"] == 1
    found = [float(row["elapsed_s"]) for row in rows_of(tmp_path / "tasks.tsv")[1:]]
    assert max(found) > 1.0
    # Of the tick, of the end of the silence, of the end of all: none of the short silence.
    rows = [row["stream"] for row in rows_of(tmp_path / "tasks.tsv")]
    assert rows.count("a") == 3
    assert found == sorted(found)


def test_accounts_grow_and_never_exceed_the_time(tmp_path: Path) -> None:
    beacon = Beacon(["a"])
    spin = subprocess.Popen(python("while True: pass"))
    try:
        with observed(tmp_path, beacon, hz=10.0) as evidence:
            if any(name.startswith("taskstats:") for name in evidence.not_available):
                pytest.skip(f"no delay accounting here: {evidence.not_available}")
            beacon.began(0, spin.pid, time.monotonic_ns())
            time.sleep(1.5)
            evidence.stop()
    finally:
        spin.kill()
        spin.wait()
    found = [row for row in rows_of(tmp_path / "tasks.tsv") if row["stream"] == "a"]
    first, last = found[1], found[-1]
    elapsed = float(last["elapsed_s"]) - float(first["elapsed_s"])
    spent = [int(last[name]) - int(first[name]) for name in ("cpu_us", "rq_us")]
    assert spent[0] > 0 and min(spent) >= 0
    # It does nothing but run or wait for a CPU, which is charged when it has waited.
    assert 0.5 * elapsed < sum(spent) / 1e6 < 1.1 * elapsed + 0.3


def test_a_recorder_shows_each_line_and_each_end(tmp_path: Path) -> None:
    beacon = Beacon(["other", "ticking"])
    stream = Stream("ticking", python(TICKING % (3, "0.7")), dict(os.environ))
    unlisted = Stream("unlisted", python(TICKING % (3, "0.01")), dict(os.environ))
    events = Events(tmp_path / "events.jsonl")
    recorder = RecorderProcess(
        program(),
        tmp_path,
        [stream, unlisted],
        until={"ticking"},
        timeout_s=60,
        priority=0,
        beacon=beacon,
    )
    assert pid_and_last(beacon, 1)[0] > 0 and pid_and_last(beacon, 0)[0] == 0
    wait_for(lambda: beacon.lines(1) >= 1)
    _, first = pid_and_last(beacon, 1)
    assert recorder.t0 * 1e9 <= first <= time.monotonic_ns()
    # Each of the others ends a silence of 0.7 s.
    assert select.select([beacon.fds[1]], [], [], 20)[0]
    beacon.heard()
    assert wait_for(lambda: pid_and_last(beacon, 1)[1] > first)
    assert recorder.wait()
    assert (pid_and_last(beacon, 1)[0], beacon.lines(1)) == (0, 3)
    beacon.close()
    events.close()


def test_programs_do_not_inherit_the_beacon(tmp_path: Path) -> None:
    beacon = Beacon(["a"])
    code = "import os; print(sorted(map(int, os.listdir('/proc/self/fd'))))"
    stream = Stream("a", python(code), dict(os.environ))
    events = Events(tmp_path / "events.jsonl")
    RecorderProcess(
        program(),
        tmp_path,
        [stream],
        until={"a"},
        timeout_s=60,
        priority=0,
        beacon=beacon,
    ).wait()
    beacon.close()
    events.close()
    # Its own three, and the folder that it lists.
    assert "[0, 1, 2, 3]" in (tmp_path / "latency-a.log").read_text()


def refreshed(parts: Parts) -> list[tuple[int, int]]:
    """(process, pid) of each of the tasks now."""
    found = [task.split("/")[:2] for task in parts("refresh").split()]
    return [(int(process), int(pid)) for process, pid in found]


def test_threads_and_descendants_are_a_streams_tasks(parts: Parts) -> None:
    tree = subprocess.Popen(python(TREE), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert tree.stdin and tree.stdout
    parts("follow", tree.pid)
    child = int(tree.stdout.readline())
    try:
        wait_for(lambda: len(refreshed(parts)) == 3)
        assert [process for process, _ in refreshed(parts)] == [tree.pid, tree.pid, child]
        # Its parent gone, a task is still the stream's; one that has ended is not.
        tree.kill()
        tree.wait()
        wait_for(lambda: refreshed(parts) == [(child, child)])
        os.kill(child, signal.SIGKILL)
        wait_for(lambda: not refreshed(parts))
    finally:
        tree.kill()
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
        parts("follow", 0)
        tree.stdin.close()
        tree.stdout.close()


def test_of_a_bomb_of_forks_the_first_are_looked_at(parts: Parts) -> None:
    shell = "for n in $(seq 100); do sleep 1000 & done; wait"
    bomb = subprocess.Popen(["sh", "-c", shell], start_new_session=True)
    try:
        children = Path(f"/proc/{bomb.pid}/task/{bomb.pid}/children")
        wait_for(lambda: len(children.read_text().split()) == 100)
        parts("follow", bomb.pid)
        found = refreshed(parts)
        assert len(found) == len(set(found)) == 64 and found[0] == (bomb.pid, bomb.pid)
    finally:
        os.killpg(bomb.pid, signal.SIGKILL)
        bomb.wait()
        parts("follow", 0)


def test_fds_do_not_grow() -> None:
    with waiting_child() as child, Parts() as parts:
        (before,) = parts.numbers("fds")
        for _ in range(3):
            parts("follow", child.pid)
            assert refreshed(parts) == [(child.pid, child.pid)]
            parts("sleepers", 400)
            parts("sleep", time.monotonic())
            assert parts.numbers("fds")[0] > before
            parts("follow", 0)
            parts("sleepers", 0)
        assert parts.numbers("fds") == [before]


@given(st.binary(max_size=64), st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1))
def test_a_name_may_hold_anything(parts: Parts, comm: bytes, minflt: int, majflt: int) -> None:
    line = b"7 (%b) D -1 2 3 4 -5 6 %d 8 %d 10 11\n" % (comm, minflt, majflt)
    assert parts("stat", line) == f"{comm.hex() or '-'} D {minflt} {majflt}"


@given(st.binary(max_size=300), st.integers(0, 80))
def test_no_line_breaks_the_parser(parts: Parts, data: bytes, cut: int) -> None:
    assert parts("stat", data)
    line = b"7 (a) b) S 1 2 3 4 5 6 77 8 9"
    expected = f"{b'a) b'.hex()} S 77 9" if cut >= len(line) else "gone"
    assert parts("stat", line[:cut]) == expected


def test_a_hostile_name_in_a_table(tmp_path: Path) -> None:
    beacon = Beacon(["a"])
    child = subprocess.Popen(python(NAMED), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert child.stdout and child.stdout.readline()
        beacon.began(0, child.pid, time.monotonic_ns())
        with observed(tmp_path, beacon) as evidence:
            wait_for(lambda: whole_lines(tmp_path / "tasks.tsv").count("\ta\t") >= 1)
            evidence.stop()
    finally:
        child.kill()
        child.communicate()
    found = [row["comm"] for row in rows_of(tmp_path / "tasks.tsv") if row["stream"] == "a"]
    assert set(found) == {"a)\\x0a(\\xff\\\\) R\\x091"}


def test_the_pace_slows_down(parts: Parts) -> None:
    silent = (0.5, 1.9, 2.0, 9.9, 10.0, 500.0)
    found = [float(parts("pace", seconds)) for seconds in silent]
    assert found == [0.25, 0.25, 0.5, 0.5, 1.0, 1.0]


def test_a_folded_stack(parts: Parts) -> None:
    def fold(stack: bytes) -> bytes:
        answer = parts("fold", stack)
        return b"" if answer == "-" else bytes.fromhex(answer)

    stack = (
        b"[<0>] kcryptd_crypt_write_io_submit+0x1b0/0x200 [dm_crypt]\n[<0>] swap_readpage+0x1/0x2\n"
        b"[<0>] 0xffffffffc0123456\n"
    )
    assert fold(stack) == b"kcryptd_crypt_write_io_submit <- swap_readpage"
    assert fold(b"") == b""
    assert fold(b"[<0>] f+0x1/0x2\n" * 40).count(b" <- ") == 23
    assert fold(b"[<0>] whole+0x1/0x2\n[<0>] cut") == b"whole <- cut"
    assert fold(b"\n[<0>] \n[<0>]\n[<0>] f") == b"f"


@given(st.binary(max_size=200))
def test_no_stack_breaks_the_folder(parts: Parts, data: bytes) -> None:
    assert parts("fold", data.replace(b"a", b"\n[<0>] "))


def test_the_kswapds_are_found(parts: Parts) -> None:
    found = []
    for path in Path("/proc").glob("[0-9]*/comm"):
        with contextlib.suppress(OSError):  # it has ended
            if path.read_text().startswith("kswapd"):
                found.append(int(path.parent.name))
    assert parts.numbers("numbered", "kswapd") == sorted(found)
    assert parts("numbered", "kswap") == ""


def seen(parts: Parts, pid: int, now: float) -> tuple[float, float]:
    """When a look from now on has found it, and how long that took: more than 400 take turns."""
    for moment in (now + 1000.0 * n for n in range(20)):
        began = time.monotonic()
        if pid in parts.numbers("sleep", moment):
            return moment, time.monotonic() - began
    raise AssertionError(f"no look found {pid}")


def test_sleepers_are_looked_for_seldom() -> None:
    with Parts() as parts, sleeping_child() as child:
        parts("sleepers", 400)
        now, took = seen(parts, child.pid, time.monotonic())
        assert parts("sleep", now + 0.5) == ""
        assert parts("sleep", now + max(0.9, took) - 0.01) == ""
        now, _ = seen(parts, child.pid, now + 1000.0)
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()
        assert child.pid not in parts.numbers("sleep", now + 1000.0)


def test_many_processes_take_turns() -> None:
    with Parts() as parts, sleeping_child() as first, sleeping_child() as second:
        parts("sleepers", 3)
        count = len(list(Path("/proc").glob("[0-9]*")))
        looks = [parts.numbers("sleep", 1000.0 * n) for n in range(1, 3 * count)]
        assert {first.pid, second.pid} <= {pid for look in looks for pid in look}
        assert max(map(len, looks)) <= 3
        assert [] in looks  # those two are not looked at each time


def test_an_observer_that_died_is_none(tmp_path: Path) -> None:
    beacon = Beacon(["a"])
    evidence = EvidenceProcess(program(), tmp_path, beacon, {}, priority=0, trace=False)
    os.kill(evidence.pid, signal.SIGKILL)
    assert evidence.stop() is None
    beacon.close()


def test_it_is_told_whose_lines_are_progress(tmp_path: Path) -> None:
    beacon = Beacon(["heartbeat", "gitk-1"])
    with pytest.raises(ValueError, match="not said"):
        EvidenceProcess(program(), tmp_path, beacon, {}, live_lock_s=9.0)
    evidence = EvidenceProcess(
        program(), tmp_path, beacon, {}, priority=0, trace=False, live_lock_s=9.0, finite={"gitk-1"}
    )
    words = Path(f"/proc/{evidence.pid}/cmdline").read_text().split("\0")
    comm = Path(f"/proc/{evidence.pid}/comm").read_text()
    assert evidence.stop()
    beacon.close()
    assert (words[0], words[1], words[7], comm) == ("observers", "evidence", "01", "observers\n")


def test_ended_before_t0_and_by_sigterm(tmp_path: Path) -> None:
    beacon = Beacon(["a"])
    evidence = EvidenceProcess(program(), tmp_path, beacon, {}, priority=0, trace=False)
    threading.Timer(0.1, os.kill, (evidence.pid, signal.SIGTERM)).start()
    facts = evidence.line(20)
    assert facts and facts["samples"] == 0
    evidence.stop()
    beacon.close()
    assert not evidence.alive()


def test_what_it_costs_is_measured(tmp_path: Path) -> None:
    beacon = Beacon(["a"])
    with waiting_child() as child, observed(tmp_path, beacon, priority=20) as evidence:
        beacon.began(0, child.pid, time.monotonic_ns())
        time.sleep(1.1)
        facts = evidence.stop()
    assert facts
    observer = facts["observer"]
    assert observer["name"] == "evidence" and observer["cpu_s"] > 0
    if any(problem.startswith("mlockall") for problem in evidence.problems):
        pytest.skip(f"not permitted here: {evidence.problems}")
    assert 500 < observer["locked_kib"] <= 3 * 1024


def test_its_memory_does_not_grow(tmp_path: Path) -> None:
    def resident(pid: int) -> int:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text()
        return int(text.partition("Rss:")[2].split()[0])

    beacon = Beacon(["a"])
    with waiting_child() as child, observed(tmp_path, beacon, hz=50.0, priority=20) as evidence:
        beacon.began(0, child.pid, time.monotonic_ns())
        wait_for(lambda: whole_lines(tmp_path / "blocked.tsv").count("\ta\t") >= 1)
        before = resident(evidence.pid)
        wait_for(lambda: whole_lines(tmp_path / "tasks.tsv").count("\ta\t") >= 100)
        assert resident(evidence.pid) <= before


def test_silence_is_told_from_a_line() -> None:
    beacon = Beacon(["a"])
    other = Beacon(beacon.names, (os.dup(beacon.fds[0]), os.dup(beacon.fds[1])))
    began = time.monotonic_ns()
    beacon.began(0, os.getpid(), began)
    beacon.said(0, began + 499_999_999, 1)
    assert not select.select([other.fds[1]], [], [], 0)[0]
    beacon.said(0, began + 999_999_999, 2)
    assert select.select([other.fds[1]], [], [], 0)[0]
    other.heard()
    assert not select.select([other.fds[1]], [], [], 0)[0]
    assert other.state() == [os.getpid(), began + 999_999_999, 2]
    other.close()
    beacon.close()
