# SPDX-License-Identifier: GPL-2.0-or-later
"""The recorder of several streams with known answers: in this process, and in its own."""

import contextlib
import fcntl
import functools
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from contract.run_record import Events
from errors import UserError
from monitors import outlet as outlet_module
from monitors.launch import RecorderProcess
from monitors.outlet import Outlet, open_all
from monitors.recorder import child as child_module
from monitors.recorder import recorder as recorder_module
from monitors.recorder.child import StartError, Stream
from monitors.recorder.recorder import Recorder
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

pytestmark = pytest.mark.clock

ROOT = Path(__file__).resolve().parents[2]
both = pytest.mark.parametrize("pty", [False, True], ids=["pipe", "pty"])


def stream(name: str, *argv: str, pty: bool = False, waits: bool = False) -> Stream:
    return Stream(name, list(argv), dict(os.environ), pty=pty, waits=waits)


def log_of(folder: Path, name: str) -> Path:
    return folder / f"latency-{name}.log"


class Heard:
    """Collects a recorder's events."""

    def __init__(self) -> None:
        self.events: list[tuple[str, dict[str, Any]]] = []

    def __call__(self, event: str, facts: dict[str, object]) -> None:
        self.events.append((event, facts))

    def of(self, event: str) -> list[dict[str, Any]]:
        return [facts for name, facts in self.events if name == event]


@contextlib.contextmanager
def recording(folder: Path, streams: list[Stream]) -> Iterator[tuple[Recorder, Heard]]:
    """A recorder whose logs are in folder, and what it says. Its logs are closed at the end."""
    opened = open_all(str(folder), [log_of(folder, one.name).name for one in streams])
    outlet = Outlet(dict(zip([one.name for one in streams], opened.values(), strict=True)), 0.05)
    outlet.start(0)
    heard = Heard()
    recorder = Recorder(streams, outlet, heard)
    try:
        yield recorder, heard
        recorder.stop()
    finally:
        for fd in opened.values():
            os.close(fd)


def no_children() -> None:
    """Nothing that was started here is left, not even a zombie."""
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)


@both
def test_several_streams(tmp_path: Path, pty: bool) -> None:
    streams = [
        stream("slow", *python(TICKING % (10000, "0.05")), pty=pty),
        stream("a", *python(TICKING % (20, "0.01")), pty=pty),
        stream("b", "sh", "-c", "echo one; exit 5", pty=pty),
    ]
    with recording(tmp_path, streams) as (recorder, heard):
        before = time.monotonic()
        assert before <= recorder.start() <= time.monotonic()
        assert recorder.run({"a"}, time.monotonic() + 0.01, lambda: False) == "deadline"
        assert recorder.run({"a"}, None, lambda: True) == "stopped"
        assert recorder.run({"a", "b"}, time.monotonic() + 40, lambda: False) == "done"
        with pytest.raises(ValueError, match="nobody"):
            recorder.run({"nobody"}, None, lambda: False)
        recorder.stop()
        recorder.stop()
    assert [facts["stream"] for facts in heard.of("stream-start")] == ["slow", "a", "b"]
    ends = {facts["stream"]: facts for facts in heard.of("stream-end")}
    assert {name: facts["status"] for name, facts in ends.items()} == {"slow": -15, "a": 0, "b": 5}
    assert not heard.of("output-lost")
    said = {}
    for name, facts in ends.items():
        rows = parse(log_of(tmp_path, name).read_text())
        add_up(rows)
        assert rows[-1][2] == "[end]" and facts["lines"] == len(rows) - 1
        assert facts["elapsed"] == pytest.approx(rows[-1][0])
        said[name] = [row[2] for row in rows[:-1]]
    assert said["a"] == [f"tick {i}" for i in range(20)] and said["b"] == ["one"]
    no_children()


@both
def test_grandchildren_and_the_unwilling_die_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pty: bool
) -> None:
    monkeypatch.setattr(recorder_module, "GRACE_S", 0.3)
    deaf = "trap '' TERM HUP; sleep 100 & echo $!; wait; wait; sleep 100"
    streams = [
        stream("deaf", "sh", "-c", deaf, pty=pty),
        stream("orphan", "sh", "-c", "sleep 100 & echo $!", pty=pty),
        stream("held", "sleep", "100", pty=pty),
    ]
    with recording(tmp_path, streams) as (recorder, heard):
        recorder.start()
        assert recorder.run({"orphan"}, time.monotonic() + 40, lambda: False) == "done"

        def both_said() -> bool:
            recorder.run({"deaf"}, time.monotonic() + 0.05, lambda: False)
            return whole_lines(log_of(tmp_path, "deaf")) != ""

        wait_for(both_said)
        held = heard.of("stream-start")[2]["pid"]
        os.kill(held, signal.SIGSTOP)
        wait_for(lambda: state_of(held) == "T")
        recorder.stop()
    for name in ("deaf", "orphan"):
        rows = parse(log_of(tmp_path, name).read_text())
        wait_for(functools.partial(is_gone, int(rows[0][2])))
    ends = {facts["stream"]: facts["status"] for facts in heard.of("stream-end")}
    assert ends == {"deaf": -9, "orphan": 0, "held": -15}
    no_children()


@both
def test_program_that_cannot_start_leaves_nothing_running(tmp_path: Path, pty: bool) -> None:
    streams = [
        stream("first", "sleep", "100", pty=pty),
        stream("second", "/no/such/program", pty=pty),
    ]
    with recording(tmp_path, streams) as (recorder, heard):
        with pytest.raises(StartError, match="cannot start second") as caught:
            recorder.start()
        no_children()
    assert "\n" not in str(caught.value) and heard.events == []


def test_full_output_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outlet_module, "CLOSE_S", 0.3)
    for module in (outlet_module, recorder_module):
        monkeypatch.setattr(module, "BOUND", 2000)
    log_of(tmp_path, "full").symlink_to("/dev/full")
    streams = [
        stream("full", *python(TICKING % (300, "0.002"))),
        stream("good", *python(TICKING % (10, "0.002"))),
    ]
    with recording(tmp_path, streams) as (recorder, heard):
        recorder.start()
        assert recorder.run({"full", "good"}, time.monotonic() + 40, lambda: False) == "done"
    lost = heard.of("output-lost")
    in_full = sum(facts["lines"] for facts in lost if facts["stream"] == "full")
    in_good = sum(facts["lines"] for facts in lost if facts["stream"] == "good")
    assert in_full == 301  # and the [end] line
    good = parse(log_of(tmp_path, "good").read_text())
    assert in_good + len(good) == 11


def test_output_that_recovers_gets_everything(tmp_path: Path) -> None:
    fifo = log_of(tmp_path, "late")
    os.mkfifo(fifo)
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    fcntl.fcntl(reader, fcntl.F_SETPIPE_SZ, 4096)
    code = TICKING.replace("tick", "x" * 200) % (200, "0.01")
    text = b""

    def drain() -> None:
        nonlocal text
        time.sleep(3)  # the outlet's thread waits in write() meanwhile
        os.set_blocking(reader, True)
        while piece := os.read(reader, 65536):
            text += piece

    thread = threading.Thread(target=drain)
    with recording(tmp_path, [stream("late", *python(code))]) as (recorder, heard):
        recorder.start()
        thread.start()
        assert recorder.run({"late"}, time.monotonic() + 40, lambda: False) == "done"
    thread.join(20)
    os.close(reader)
    rows = parse(text.decode())
    assert len(rows) == 201 and not heard.of("output-lost")
    assert [row[2] for row in rows] == [*(f"{'x' * 200} {i}" for i in range(200)), "[end]"]
    # Stamping did not wait for writing.
    assert max(row[1] for row in rows) < 1.5


@both
def test_a_terminal_makes_a_program_print_line_by_line(tmp_path: Path, pty: bool) -> None:
    code = "import time\nfor i in range(4): print('line', i); time.sleep(0.25)\n"
    argv = ["env", "-u", "PYTHONUNBUFFERED", *python(code)]
    with recording(tmp_path, [stream("x", *argv, pty=pty)]) as (recorder, _):
        recorder.start()
        assert recorder.run({"x"}, time.monotonic() + 40, lambda: False) == "done"
    rows = parse(log_of(tmp_path, "x").read_text())
    add_up(rows)
    assert [row[2] for row in rows] == [*(f"line {i}" for i in range(4)), "[end]"]
    spread = rows[3][0] - rows[0][0]
    # Through a pipe Python keeps it all until it ends.
    assert 0.5 < spread < 10 if pty else spread == 0


@both
def test_a_lone_carriage_return_and_a_tab_stay_as_they_are(tmp_path: Path, pty: bool) -> None:
    program = stream("x", "printf", "a\\tb\\r\\nc", pty=pty)
    with recording(tmp_path, [program]) as (recorder, _):
        recorder.start()
        assert recorder.run({"x"}, time.monotonic() + 40, lambda: False) == "done"
    rows = parse(log_of(tmp_path, "x").read_text())
    assert [row[2] for row in rows] == ["a\\x09b\\x0d", "c", "[end]"]


WAITING = (
    "import os, sys, time\n"
    "time.sleep(%s)\n"
    "at = time.monotonic()\n"
    "os.write(1, b'starting up\\nready\\n')\n"
    "heard = sys.stdin.readline()\n"
    "os.write(1, b'%%r %%r\\n' %% (at, time.monotonic())); os.write(1, heard.encode() + b'on\\n')\n"
)


@both
def test_streams_that_wait_begin_together(tmp_path: Path, pty: bool) -> None:
    streams = [
        stream("quick", *python(WAITING % "0"), pty=pty, waits=True),
        stream("slow", *python(WAITING % "0.5"), pty=pty, waits=True),
    ]
    with recording(tmp_path, streams) as (recorder, _):
        t0 = recorder.start()
        assert recorder.run({"quick", "slow"}, time.monotonic() + 40, lambda: False) == "done"
    for name in ("quick", "slow"):
        rows = parse(log_of(tmp_path, name).read_text())
        add_up(rows)
        times, *rest = [row[2] for row in rows]
        # Neither `ready`, nor what was said before, nor an echo of the line that let it begin.
        assert rest == ["go", "on", "[end]"]
        was_ready, began = map(float, times.split())
        assert was_ready < t0 <= began
        assert began - t0 <= rows[0][0] + 0.001
    quick = float(parse(log_of(tmp_path, "quick").read_text())[0][2].split()[0])
    assert t0 - quick > 0.4  # it waited for the other


@both
def test_program_that_dies_before_it_is_ready(tmp_path: Path, pty: bool) -> None:
    streams = [
        stream("good", *python(WAITING % "0"), pty=pty, waits=True),
        stream("bad", "sh", "-c", "echo trying; echo no such repository >&2", pty=pty, waits=True),
        stream("other", "sleep", "100", pty=pty),
    ]
    with recording(tmp_path, streams) as (recorder, heard):
        with pytest.raises(StartError) as caught:
            recorder.start()
        assert str(caught.value) == "bad ended before it was ready: no such repository"
        no_children()
    assert heard.events == []


def test_program_that_is_never_ready(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(child_module, "READY_S", 1.0)
    argv = ["sh", "-c", "echo not yet ready; exec sleep 100"]
    with recording(tmp_path, [stream("x", *argv, waits=True)]) as (recorder, _):
        with pytest.raises(StartError, match="x did not start up within 1 s"):
            recorder.start()
        no_children()


@both
def test_program_that_dies_between_ready_and_go(tmp_path: Path, pty: bool) -> None:
    streams = [
        stream("dead", "sh", "-c", "echo ready; exit 4", pty=pty, waits=True),
        stream("slow", *python(WAITING % "0.7"), pty=pty, waits=True),
    ]
    with recording(tmp_path, streams) as (recorder, heard):
        recorder.start()
        assert recorder.run({"dead", "slow"}, time.monotonic() + 40, lambda: False) == "done"
    assert {f["stream"]: f["status"] for f in heard.of("stream-end")} == {"dead": 4, "slow": 0}
    assert [row[2] for row in parse(log_of(tmp_path, "dead").read_text())] == ["[end]"]


@both
def test_program_does_not_inherit_what_makes_the_recorder_special(
    tmp_path: Path, pty: bool
) -> None:
    code = (
        "import signal; from pathlib import Path; import tests.monitors.test_recorder as here\n"
        "Path('/proc/self/oom_score_adj').write_text('300')\n"
        "signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
        # Forked after the recorder has seen to it.
        "script = 'sleep 0.3; cat /proc/self/oom_score_adj; grep SigIgn /proc/self/status; env'\n"
        f"argv, env = ['sh', '-c', script], {{'PATH': '/bin:/usr/bin', 'ONLY': 'this'}}\n"
        f"stream = here.Stream('x', argv, env, pty={pty})\n"
        f"with here.recording(Path({str(tmp_path)!r}), [stream]) as (recorder, _):\n"
        " recorder.start(); recorder.run({'x'}, None, lambda: False)\n"
    )
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, timeout=50)
    adjust, ignored, *env = [row[2] for row in parse(log_of(tmp_path, "x").read_text())]
    assert adjust == "0"
    mask = int(ignored.rpartition("\\x09")[2], 16)
    for number in (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGINT):
        assert mask & (1 << number - 1) == 0, number
    assert "ONLY=this" in env and not [line for line in env if line.startswith("HOME=")]


def record(
    folder: Path, streams: list[Stream], *, until: set[str], timeout_s: float, priority: int = 0
) -> RecorderProcess:
    """A recorder's process whose events come after the runner's own in events.jsonl."""
    events = Events(folder / "events.jsonl")
    events.write("phase", name="workload")
    try:
        return RecorderProcess(
            folder, streams, events.fileno(), until=until, timeout_s=timeout_s, priority=priority
        )
    finally:
        events.close()


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


FIELDS = {
    "start": {"t0"},
    "stream-start": {"stream", "pid"},
    "stream-end": {"stream", "elapsed", "status", "lines"},
    "end": {"elapsed"},
}


def test_recorders_process_from_start_to_end(tmp_path: Path) -> None:
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
        assert 2_000 < observer["locked_kib"] <= 12 * 1024


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


def test_program_inherits_no_file_and_no_ignored_signal(tmp_path: Path) -> None:
    script = "sleep 0.3; ls /proc/$$/fd; grep SigIgn /proc/self/status"
    streams = [stream("x", "sh", "-c", script), stream("y", "sh", "-c", script)]
    assert record(tmp_path, streams, until={"x", "y"}, timeout_s=40).wait()
    for name in ("x", "y"):
        *fds, ignored, _ = [row[2] for row in parse(log_of(tmp_path, name).read_text())]
        assert fds == ["0", "1", "2"]
        mask = int(ignored.rpartition("\\x09")[2], 16)
        assert mask & (1 << signal.SIGINT - 1 | 1 << signal.SIGPIPE - 1) == 0


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


def test_recorders_process_says_what_cannot_start(tmp_path: Path) -> None:
    for argv, waits, words in (
        (["/no/such/program"], False, "cannot start x: No such file or directory"),
        (["sh", "-c", "echo 'n\u00f6 \U0001f3b5 \"q\"'"], True, 'ready: n\u00f6 \U0001f3b5 "q"'),
    ):
        streams = [stream("x", *argv, waits=waits)]
        with pytest.raises(UserError) as caught:
            record(tmp_path, streams, until={"x"}, timeout_s=9)
        assert str(caught.value).endswith(words)
    no_children()


def test_events_that_cannot_be_written_at_first_are_written_later(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    full = 0
    with contextlib.suppress(BlockingIOError):
        while True:
            full += os.write(writer, b"\0" * 4096)
    with open(tmp_path / "x", "wb") as log:
        outlet = Outlet({"x": log.fileno(), "events": writer}, 0.02)
        outlet.start(0)

        def on_event(name: str, facts: dict[str, object]) -> None:
            outlet.put([("events", name.encode() + b"\n")])

        recorder = Recorder([stream("x", "echo", "one")], outlet, on_event)
        recorder.start()
        recorder.run({"x"}, time.monotonic() + 40, lambda: False)
        wait_for(lambda: outlet.failing)
        while full > 0:
            full -= len(os.read(reader, min(full, 65536)))
        recorder.stop()
    os.close(writer)
    with open(reader, "rb") as events:
        assert events.read() == b"stream-start\nstream-end\n"
    assert [row[2] for row in parse((tmp_path / "x").read_text())] == ["one", "[end]"]
