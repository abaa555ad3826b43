# SPDX-License-Identifier: GPL-2.0-or-later
"""The recorder of several streams with known answers."""

import contextlib
import fcntl
import functools
import json
import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from contract.run_record import Events
from errors import UserError
from monitors import launch
from monitors.launch import RecorderProcess
from monitors.streams import Stream
from setup.observers import program
from tests.support.kernel_logs import (
    TICKING,
    add_up,
    is_gone,
    parse,
    python,
    state_of,
    wait_for,
    whole_lines,
)
from tests.support.observers import limited

pytestmark = pytest.mark.clock


def stream(name: str, *argv: str, waits: bool = False) -> Stream:
    return Stream(name, list(argv), dict(os.environ), waits=waits)


def log_of(folder: Path, name: str) -> Path:
    return folder / f"latency-{name}.log"


def lines_of(folder: Path, name: str) -> list[str]:
    """What a stream said, as it is in its log, whose gaps add up."""
    rows = parse(log_of(folder, name).read_text())
    add_up(rows)
    return [row[2] for row in rows]


def record(
    folder: Path,
    streams: list[Stream],
    *,
    until: set[str],
    timeout_s: float = 40,
    priority: int = 0,
    path: Path | None = None,
) -> RecorderProcess:
    """A recorder whose events come after the runner's own in events.jsonl."""
    events = Events(folder / "events.jsonl")
    events.write("phase", name="workload")
    try:
        return RecorderProcess(
            path or program(),
            folder,
            streams,
            until=until,
            timeout_s=timeout_s,
            priority=priority,
        )
    finally:
        events.close()


def recorded(folder: Path, *streams: Stream) -> dict[str, Any]:
    """The facts of a recording that lasted until all these streams had ended."""
    facts = record(folder, list(streams), until={one.name for one in streams}).wait()
    assert facts and facts["outcome"] == "done"
    return facts


def events_of(folder: Path) -> list[dict[str, Any]]:
    """The events so far, each a JSON object on a line."""
    lines = whole_lines(folder / "events.jsonl").splitlines()
    assert json.loads(lines[0])["event"] == "phase"
    return [json.loads(line) for line in lines[1:]]


def started(folder: Path, name: str) -> int:
    """The pid of a stream's program, when its event has been written."""

    def find() -> int | None:
        pids = [e["pid"] for e in events_of(folder) if e.get("stream") == name]
        return pids[0] if pids else None

    pid = wait_for(find)
    assert isinstance(pid, int)
    return pid


def test_grandchildren_and_the_unwilling_die_too(tmp_path: Path) -> None:
    deaf = "trap '' TERM HUP; sleep 100 & echo $!; wait; wait; sleep 100"
    streams = [
        stream("deaf", "sh", "-c", deaf),
        stream("orphan", "sh", "-c", "sleep 100 & echo $!"),
        stream("held", "sleep", "100"),
    ]
    process = record(tmp_path, streams, until={"held"})
    held = started(tmp_path, "held")
    wait_for(lambda: whole_lines(log_of(tmp_path, "deaf")))
    wait_for(lambda: "stream-end" in (tmp_path / "events.jsonl").read_text())  # the orphan's
    os.kill(held, signal.SIGSTOP)
    wait_for(lambda: state_of(held) == "T")
    facts = process.stop()
    for name in ("deaf", "orphan"):
        wait_for(functools.partial(is_gone, int(lines_of(tmp_path, name)[0])))
    assert facts and facts["ends"] == {"deaf": -9, "orphan": 0, "held": -15}


def test_output_that_stays_open_is_not_waited_for_long(tmp_path: Path) -> None:
    # In a session of its own it is not killed with its parent, and keeps the pipe.
    stays = f"echo $$ >{tmp_path}/stays; exec sleep 100"
    script = f"setsid sh -c '{stays}' & until [ -s {tmp_path}/stays ]; do sleep 0.05; done; exit 3"
    began = time.monotonic()
    facts = recorded(tmp_path, stream("x", "sh", "-c", script))
    assert facts["ends"] == {"x": 3} and 5 <= time.monotonic() - began < 15
    os.kill(int((tmp_path / "stays").read_text()), signal.SIGKILL)


def test_full_output_is_counted_and_spoils_no_other(tmp_path: Path) -> None:
    log_of(tmp_path, "full").symlink_to("/dev/full")
    flood = "yes 'more than the recorder keeps' | head -n 200000"
    facts = recorded(
        tmp_path,
        stream("full", "sh", "-c", flood),
        stream("good", *python(TICKING % (10, "0.1"))),
    )
    dropped = facts["dropped"]
    assert dropped["full"][0] == 200001  # and the [end] line
    lost = dropped.get("good", [0, 0])[0]
    # Where one was lost, the next one's gap is less than the time since the last in the log.
    assert len(parse(log_of(tmp_path, "good").read_text())) + lost == 11


def test_output_that_recovers_gets_everything(tmp_path: Path) -> None:
    fifo = log_of(tmp_path, "late")
    os.mkfifo(fifo)
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    fcntl.fcntl(reader, fcntl.F_SETPIPE_SZ, 4096)
    code = TICKING.replace("tick", "x" * 200) % (200, "0.01")
    text = b""

    def drain() -> None:
        nonlocal text
        time.sleep(3)  # the writing thread waits in write() meanwhile
        os.set_blocking(reader, True)
        while piece := os.read(reader, 65536):
            text += piece

    thread = threading.Thread(target=drain)
    thread.start()
    facts = recorded(tmp_path, stream("late", *python(code)))
    thread.join(20)
    os.close(reader)
    rows = parse(text.decode())
    assert len(rows) == 201 and facts["dropped"] == {}
    assert [row[2] for row in rows] == [*(f"{'x' * 200} {i}" for i in range(200)), "[end]"]
    # Stamping did not wait for writing.
    assert max(row[1] for row in rows) < 1.5


def test_events_that_cannot_be_written_at_first_are_written_later(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "events.jsonl")
    reader = os.open(tmp_path / "events.jsonl", os.O_RDWR | os.O_NONBLOCK)
    full = 0
    with contextlib.suppress(BlockingIOError):
        while True:
            full += os.write(reader, b"\0" * 4096)
    streams = [stream("x", "sh", "-c", "sleep 1; echo one")]
    process = RecorderProcess(program(), tmp_path, streams, until={"x"}, timeout_s=40, priority=0)
    time.sleep(0.7)
    while full > 0:
        full -= len(os.read(reader, min(full, 65536)))
    assert process.wait()
    events = os.read(reader, 65536).splitlines()
    os.close(reader)
    names = [json.loads(line)["event"] for line in events]
    assert sorted(names) == ["end", "start", "stream-end", "stream-start"]
    assert lines_of(tmp_path, "x") == ["one", "[end]"]


def test_a_flood_is_recorded_whole(tmp_path: Path) -> None:
    code = "import sys\nfor i in range(100000): print('commit', i, 'x' * (i % 80))\n"
    assert recorded(tmp_path, stream("x", *python(code)))["dropped"] == {}
    expected = [f"commit {i} {'x' * (i % 80)}" for i in range(100000)]
    assert lines_of(tmp_path, "x") == [*expected, "[end]"]


@pytest.mark.parametrize("line", ["", "\u00e9" * 300, "\u00e9" * 3000])
def test_what_becomes_far_longer_is_recorded_whole(tmp_path: Path, line: str) -> None:
    count = 200_000 // (len(line) * 8 + 8)
    said = line.encode() + b"\n"
    code = f"import sys\nsys.stdout.buffer.write({said!r} * {count})\n"
    assert recorded(tmp_path, stream("x", *python(code)))["dropped"] == {}
    size = len(line.encode())
    kept = "\\xc3\\xa9" * (min(size, 4096) // 2) + f"\u2026[{size} bytes]" * (size > 4096)
    assert lines_of(tmp_path, "x") == [*[kept] * count, "[end]"]


def test_a_long_last_line_is_told_in_part(tmp_path: Path) -> None:
    streams = [stream("x", *python("print('x' * 3000)")), stream("y", "sleep", "1")]
    facts = record(tmp_path, streams, until={"y"}).wait()
    assert facts and set(facts["early"]["x"]) == {"x"} and 900 < len(facts["early"]["x"]) < 1024
    assert lines_of(tmp_path, "x") == ["x" * 3000, "[end]"]


def test_a_lone_carriage_return_and_a_tab_stay_as_they_are(tmp_path: Path) -> None:
    recorded(tmp_path, stream("x", "printf", "a\\tb\\r\\nc"))
    assert lines_of(tmp_path, "x") == ["a\\x09b\\x0d", "c", "[end]"]


WAITING = (
    "import os, sys, time\n"
    "time.sleep(%s)\n"
    "at = time.monotonic()\n"
    "os.write(1, b'starting up\\nready\\n')\n"
    "heard = sys.stdin.readline()\n"
    "os.write(1, b'%%r %%r\\n' %% (at, time.monotonic())); os.write(1, heard.encode() + b'on\\n')\n"
)


def test_streams_that_wait_begin_together(tmp_path: Path) -> None:
    streams = [
        stream("quick", *python(WAITING % "0"), waits=True),
        stream("slow", *python(WAITING % "0.5"), waits=True),
    ]
    process = record(tmp_path, streams, until={"quick", "slow"})
    t0 = process.t0
    assert process.wait()
    for name in ("quick", "slow"):
        rows = parse(log_of(tmp_path, name).read_text())
        times, *rest = lines_of(tmp_path, name)
        # Neither `ready`, nor what was said before, nor an echo of the line that let it begin.
        assert rest == ["go", "on", "[end]"]
        was_ready, began = map(float, times.split())
        assert was_ready < t0 <= began
        assert began - t0 <= rows[0][0] + 0.001
    quick = float(lines_of(tmp_path, "quick")[0].split()[0])
    assert t0 - quick > 0.4  # it waited for the other


def left_running(folder: Path) -> list[str]:
    """The programs that have this folder's name in their environment."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if os.fsencode(folder) in (path / "environ").read_bytes():
                found.append((path / "comm").read_text())
    return found


@pytest.mark.parametrize(
    ("argv", "waits", "words"),
    [
        (["/no/such/program"], False, "cannot start bad: No such file or directory"),
        (
            ["sh", "-c", "echo trying; echo no such repository >&2"],
            True,
            "bad ended before it was ready: no such repository",
        ),
        (
            ["sh", "-c", "echo 'n\u00f6 \U0001f3b5 \"q\"'"],
            True,
            'bad ended before it was ready: n\u00f6 \U0001f3b5 "q"',
        ),
        (["true"], True, "bad ended before it was ready"),
        (["sh", "-c", "yes | head -n 9999; echo; echo end"], True, "was ready: end"),
        (["sh", "-c", "exec sleep 100"], True, "bad did not start up within 2 s"),
        (
            ["sh", "-c", "echo not yet ready; exec sleep 100"],
            True,
            "bad did not start up within 2 s: not yet ready",
        ),
    ],
)
def test_a_program_that_does_not_start_leaves_nothing_running(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, argv: list[str], waits: bool, words: str
) -> None:
    monkeypatch.setattr(launch, "READY_S", 2.0)
    monkeypatch.setenv("RUN", str(tmp_path))
    streams = [
        stream("good", *python(WAITING % "0"), waits=True),
        stream("bad", *argv, waits=waits),
        stream("other", "sleep", "100"),
    ]
    with pytest.raises(UserError) as caught:
        record(tmp_path, streams, until={"good"})
    assert str(caught.value).endswith(words) and "\n" not in str(caught.value)
    assert left_running(tmp_path) == [] and events_of(tmp_path) == []


def test_too_many_open_files_leave_nothing_running(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RUN", str(tmp_path))
    streams = [stream(name, "sleep", "100") for name in "abc"]
    found = set()
    for files in range(4, 14):
        with pytest.raises(UserError) as caught:
            record(tmp_path, streams, until={"a"}, path=limited(tmp_path, f"-n {files}"))
        found.add(str(caught.value))
        assert left_running(tmp_path) == []
        if "c: pipe" in str(caught.value):
            break
    assert "cannot start a: pipe: Too many open files" in found
    assert "cannot start c: pipe: Too many open files" in found


def test_asked_to_end_while_a_program_starts_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RUN", str(tmp_path))
    asks = "echo slow; sleep 0.5; kill -TERM $PPID; exec sleep 100"  # when the word has been read
    with pytest.raises(UserError) as caught:
        record(tmp_path, [stream("x", "sh", "-c", asks, waits=True)], until={"x"})
    assert str(caught.value) == "the recorder was asked to end while x started up: slow"
    assert left_running(tmp_path) == []


def test_a_runner_that_goes_away_while_a_program_starts_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tell = RecorderProcess.tell

    def tell_and_leave(process: RecorderProcess, data: bytes) -> None:
        tell(process, data)
        assert process._child.stdin
        if data == b"prepare\n":
            process._child.stdin.close()

    monkeypatch.setenv("RUN", str(tmp_path))
    monkeypatch.setattr(RecorderProcess, "tell", tell_and_leave)
    with pytest.raises(UserError) as caught:
        record(tmp_path, [stream("x", "sleep", "100", waits=True)], until={"x"})
    assert str(caught.value) == "the recorder was asked to end while x started up"
    assert left_running(tmp_path) == []


def test_program_that_dies_between_ready_and_go(tmp_path: Path) -> None:
    facts = recorded(
        tmp_path,
        stream("dead", "sh", "-c", "echo ready; exit 4", waits=True),
        stream("slow", *python(WAITING % "0.7"), waits=True),
    )
    assert facts["ends"] == {"dead": 4, "slow": 0}
    assert lines_of(tmp_path, "dead") == ["[end]"]


SPECIAL = (
    "sleep 0.3; "  # until the recorder has seen to it
    "cat /proc/$$/oom_score_adj; grep -E 'VmLck|SigIgn' /proc/$$/status; cat /proc/$$/stat; "
    "ls /proc/$$/fd; env"
)


def test_a_program_inherits_nothing_that_makes_the_recorder_special(tmp_path: Path) -> None:
    adjust = Path("/proc/self/oom_score_adj")
    before = adjust.read_text()
    handler = signal.signal(signal.SIGINT, signal.SIG_IGN)
    environment = {"PATH": "/usr/bin:/bin", "ONLY": "this"}
    streams = [Stream(name, ["sh", "-c", SPECIAL], environment) for name in ("x", "y")]
    try:
        adjust.write_text("300")
        process = record(tmp_path, streams, until={"x", "y"}, priority=20)
    finally:
        signal.signal(signal.SIGINT, handler)
        adjust.write_text(before)
    assert process.wait()
    for name in ("x", "y"):
        adjusted, locked, ignored, stat, *seen = lines_of(tmp_path, name)
        assert adjusted == "0" and locked.split()[-2:] == ["0", "kB"]
        mask = int(ignored.rpartition("\\x09")[2], 16)
        for number in (signal.SIGINT, signal.SIGPIPE, signal.SIGXFSZ, signal.SIGTERM):
            assert mask & (1 << number - 1) == 0, number
        pid, fields = int(stat.split()[0]), stat.rpartition(")")[2].split()
        assert int(fields[3]) == pid  # its session
        assert int(fields[38]) == os.SCHED_OTHER
        assert [line for line in seen if line.isdigit()] == ["0", "1", "2"]
        assert "ONLY=this" in seen and not [line for line in seen if line.startswith("HOME=")]


FIELDS = {
    "start": {"t0"},
    "stream-start": {"stream", "pid"},
    "stream-end": {"stream", "elapsed", "status", "lines"},
    "end": {"elapsed"},
}


def test_from_start_to_end(tmp_path: Path) -> None:
    streams = [
        stream("beat", *python(TICKING % (100000, "0.05"))),
        stream("waiting", *python(WAITING % "0.2"), waits=True),
        stream("b", "sh", "-c", "echo one; exit 5"),
    ]
    before = time.monotonic()
    process = record(tmp_path, streams, until={"waiting", "b"}, timeout_s=40, priority=20)
    assert before + 0.2 < process.t0 <= time.monotonic()
    facts = process.wait()
    after = time.monotonic()
    assert facts and not process.alive()
    assert facts["outcome"] == "done" and facts["dropped"] == {}
    assert facts["ends"] == {"beat": -15, "waiting": 0, "b": 5}
    events = events_of(tmp_path)
    assert all(event.keys() == {"t", "event", *FIELDS[event["event"]]} for event in events)
    times = [event["t"] for event in events]
    assert times == sorted(times) and before - 0.001 <= times[0] <= times[-1] <= after + 0.001
    by_name: dict[str, list[dict[str, Any]]] = {name: [] for name in FIELDS}
    for event in events:
        by_name[event["event"]].append(event)
    assert [e["stream"] for e in by_name["stream-start"]] == ["beat", "waiting", "b"]
    assert [e["t0"] for e in by_name["start"]] == [process.t0]
    assert [e["elapsed"] for e in by_name["end"]] == [facts["elapsed"]]
    assert len(by_name["stream-end"]) == 3
    for event in by_name["stream-end"]:
        rows = parse(log_of(tmp_path, event["stream"]).read_text())
        add_up(rows)
        assert rows[-1][2] == "[end]" and event["lines"] == len(rows) - 1
        assert event["elapsed"] == pytest.approx(rows[-1][0])
        assert event["status"] == facts["ends"][event["stream"]]
    assert all(is_gone(event["pid"]) for event in by_name["stream-start"])
    observer = facts["observer"]
    assert observer.keys() == {
        "name", "cpu_s", "elapsed_s", "locked_kib", "vmlck_kib", "major_faults"
    }  # fmt: skip
    assert observer["name"] == "recorder" and observer["cpu_s"] > 0
    if not any(problem.startswith("mlockall") for problem in process.problems):
        assert 500 < observer["locked_kib"] <= 2 * 1024


def test_stopped_program_is_a_gap_of_that_length(tmp_path: Path) -> None:
    streams = [stream("x", *python(TICKING % (100000, "0.02")))]
    streams.append(stream("other", *python(TICKING % (100000, "0.02"))))
    process = record(tmp_path, streams, until={"x"}, timeout_s=100)
    pid = started(tmp_path, "x")
    wait_for(lambda: whole_lines(log_of(tmp_path, "x")).count("\n") > 5)
    before = time.monotonic()
    os.kill(pid, signal.SIGSTOP)
    time.sleep(1.5)
    os.kill(pid, signal.SIGCONT)
    stopped = time.monotonic() - before
    wait_for(lambda: max(row[1] for row in parse(whole_lines(log_of(tmp_path, "x")))) > 1.3)
    facts = process.stop()
    assert facts and facts["outcome"] == "stopped" and facts["ends"] == {"x": -15, "other": -15}
    rows = parse(log_of(tmp_path, "x").read_text())
    add_up(rows)
    longest = max(rows[:-1], key=lambda row: row[1])
    assert stopped - 0.1 < longest[1] < stopped + 1
    # It is where it was: stopped after t0 + its beginning.
    assert longest[0] - longest[1] == pytest.approx(before - process.t0, abs=0.7)
    assert max(row[1] for row in parse(log_of(tmp_path, "other").read_text())) < longest[1] * 0.7


def test_stop_from_outside_ends_all(tmp_path: Path) -> None:
    argv = ["sh", "-c", "sleep 100 & echo $!; printf unfinished; wait"]
    process = record(tmp_path, [stream("x", *argv)], until={"x"}, timeout_s=100)
    pid = started(tmp_path, "x")
    wait_for(lambda: whole_lines(log_of(tmp_path, "x")))
    time.sleep(0.3)
    began = time.monotonic()
    facts = process.stop()
    assert facts and facts["outcome"] == "stopped" and facts["ends"] == {"x": -15}
    assert time.monotonic() - began < 20 and not process.alive()
    rows = parse(log_of(tmp_path, "x").read_text())
    assert [row[2] for row in rows[1:]] == ["unfinished", "[end]"]
    assert is_gone(pid) and wait_for(lambda: is_gone(int(rows[0][2])))
    assert [e["event"] for e in events_of(tmp_path)][-2:] == ["end", "stream-end"]


def test_all_open_gaps_are_of_one_moment(tmp_path: Path) -> None:
    # Its output takes nothing for long, and much waits: each log's end waits for it in vain.
    os.mkfifo(log_of(tmp_path, "big"))
    reader = os.open(log_of(tmp_path, "big"), os.O_RDONLY | os.O_NONBLOCK)
    flood = f"yes {'x' * 999} | head -n 2200; sleep 100"
    streams = [stream("big", "sh", "-c", flood)]
    streams += [stream(name, "sleep", "100") for name in ("a", "b", "c")]
    process = record(tmp_path, streams, until={"a"}, timeout_s=100)
    time.sleep(8)
    stopper = threading.Thread(target=process.stop)
    stopper.start()
    time.sleep(3.5)
    os.set_blocking(reader, True)
    while os.read(reader, 1 << 16):
        pass
    stopper.join()
    os.close(reader)
    ends = [parse(log_of(tmp_path, name).read_text())[-1] for name in ("a", "b", "c")]
    assert ends[0] == ends[1] == ends[2] and ends[0][2] == "[end]"


def test_sigterm_ends_it_too(tmp_path: Path) -> None:
    streams = [stream("x", "sleep", "100")]
    process = record(tmp_path, streams, until={"x"}, timeout_s=100)
    os.kill(process.pid, signal.SIGINT)  # Ctrl-C, which goes to all: the runner decides
    time.sleep(0.5)
    assert process.alive()
    os.kill(process.pid, signal.SIGTERM)
    facts = process.wait()
    assert facts and facts["outcome"] == "stopped" and facts["ends"] == {"x": -15}


def test_deadline_is_an_outcome(tmp_path: Path) -> None:
    streams = [stream("x", "sleep", "100")]
    process = record(tmp_path, streams, until={"x"}, timeout_s=0.7)
    facts = process.wait()
    assert facts and facts["outcome"] == "deadline" and 0.7 <= facts["elapsed"] < 10


def test_recorder_that_died_is_none(tmp_path: Path) -> None:
    streams = [stream("x", *python(TICKING % (100000, "0.05")))]
    process = record(tmp_path, streams, until={"x"}, timeout_s=100)
    pid = started(tmp_path, "x")
    killer = threading.Timer(0.3, os.kill, (process.pid, signal.SIGKILL))
    killer.start()
    assert process.wait() is None and not process.alive()
    killer.join()
    # Nobody reads the program's output any more; what was written stays.
    wait_for(functools.partial(is_gone, pid))
    assert [e["event"] for e in events_of(tmp_path)] == ["stream-start", "start"]
