# SPDX-License-Identifier: GPL-2.0-or-later
"""What a --device run says of itself, whichever way it ends; the machine's part is played here."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from contract.options import Options
from contract.run_record import Events, read_events
from errors import Exit, UserError
from measure import disks, machine_facts, one_run, outcome
from monitors.launch import RecorderProcess
from monitors.streams import Stream
from run import arguments, on_device
from run.jobs.stop_signals import Stopped
from run.measure_command import measure_argv
from setup import rsync_daemon
from setup.observers import program
from tests.support.kernel_logs import TICKING, python
from vm import relay
from workloads import desktop

ROOT = Path(__file__).resolve().parents[2]
BARE = ["--device", "/dev/none", "--bare", "--run-dir", "x", "--repo", "/r", "--music", "/m"]


def bare(run_dir: Path) -> Options:
    return arguments.parse([str(run_dir) if word == "x" else word for word in BARE])


@pytest.fixture
def own_signals() -> Any:
    """one_run.Stop's handlers are gone after the test."""
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = [signal.getsignal(number) for number in numbers]
    yield
    for number, handler in zip(numbers, before, strict=True):
        signal.signal(number, handler)


def interrupt() -> None:
    os.kill(os.getpid(), signal.SIGINT)


def fail() -> None:
    raise UserError("umount /scratch: target is busy")


@pytest.mark.usefixtures("own_signals")
@pytest.mark.parametrize(
    ("workload", "teardown", "status", "said"),
    [
        (None, None, Exit.OK, ("completed", "done")),
        (interrupt, None, Exit.INTERRUPTED, ("aborted", "interrupted by SIGINT")),
        (None, interrupt, Exit.INTERRUPTED, ("completed", "done")),
        (None, fail, None, ("completed", "done")),
        (interrupt, fail, None, ("aborted", "umount /scratch: target is busy")),
        (fail, None, None, ("aborted", "umount /scratch: target is busy")),
    ],
)
def test_the_first_word_stays(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    workload: Callable[[], None] | None,
    teardown: Callable[[], None] | None,
    status: Exit | None,
    said: tuple[str, str],
) -> None:
    undone = []

    class Prepared:
        def __init__(self, *_: object, **__: object) -> None: ...

        def __enter__(self) -> None: ...

        def __exit__(self, *_: object) -> None:
            if teardown:
                teardown()
            undone.append(True)

    def work(*_: object) -> tuple[str, str]:
        if workload:
            workload()
        return "completed", "done"

    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setattr("setup.crypt_lvm.ownership.prepared", Prepared)
    monkeypatch.setattr(disks, "stack_facts", lambda *_: {})
    monkeypatch.setattr(disks, "watched", lambda *_: {"disk": "vdb"})
    monkeypatch.setattr(one_run, "workload", work)
    monkeypatch.setattr(desktop, "fill", lambda *_: None)
    monkeypatch.setattr(one_run, "SCRATCH", tmp_path)
    if status is None:
        with pytest.raises(UserError):
            one_run.run(bare(tmp_path))
    else:
        assert one_run.run(bare(tmp_path)) == status
    assert undone or teardown is fail
    events = [e for e in read_events(tmp_path / "events.jsonl") if e["event"] == "status"]
    assert [(event["state"], event["why"]) for event in events] == [said]


def test_a_player_that_dies_is_no_completed_run(tmp_path: Path) -> None:
    path = str(tmp_path / "events.jsonl")
    until_it_ended = f"import time\nwhile 'stream-end' not in open({path!r}).read():"
    streams = [
        Stream("heartbeat", python(TICKING % (100000, "0.05")), dict(os.environ)),
        Stream("player", ["sh", "-c", "echo chunk 0; echo 'no \\ rsync'; exit 3"], {}),
        Stream("gitk-1", python(f"{until_it_ended} time.sleep(0.01)"), dict(os.environ)),
    ]
    events = Events(tmp_path / "events.jsonl")
    recorder = RecorderProcess(
        program(), tmp_path, streams, until={"gitk-1"}, timeout_s=40, priority=0
    )
    recorded = recorder.wait()
    events.close()
    assert recorded and recorded["early"] == {"player": "no \\\\ rsync"}
    killed = machine_facts.counter("oom_kill")
    assert outcome.judged(bare(tmp_path), desktop.WORKLOAD, recorded, killed) == (
        "aborted",
        "player ended early with status 3: no \\\\ rsync",
    )
    recorded["early"] = {}
    assert outcome.judged(bare(tmp_path), desktop.WORKLOAD, recorded, killed)[0] == "completed"


def test_who_was_ended_with_the_run_is_no_victim_of_the_oom_killer(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(machine_facts, "counter", lambda _: 5)
    ends = {"heartbeat": -15, "player": -9, "gitk-1": -9, "gitk-2": 0}
    recorded = {"outcome": "done", "ends": ends, "early": {}}
    assert outcome.judged(bare(tmp_path), desktop.WORKLOAD, recorded, 4) == (
        "oom",
        "the kernel killed 1 for lack of memory, among them gitk-1",
    )
    recorded |= {"ends": {**ends, "player": -9}, "early": {"player": ""}}
    assert outcome.judged(bare(tmp_path), desktop.WORKLOAD, recorded, 4)[1].endswith(
        "among them gitk-1, player"
    )


def test_what_was_not_done_at_its_limit_is_unfinished_unless_a_program_was_killed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    ends = {"heartbeat": -15, "player": -15, "gitk-1": -15}
    recorded = {"outcome": "deadline", "ends": ends, "early": {}}
    monkeypatch.setattr(machine_facts, "counter", lambda _: 5)
    limit = bare(tmp_path).timeout
    late = f"the gitk's were not done within {limit} s"
    for before, expected in ((5, ("unfinished", late)), (None, ("unfinished", late))):
        assert outcome.judged(bare(tmp_path), desktop.WORKLOAD, recorded, before) == expected
    killed = outcome.judged(bare(tmp_path), desktop.WORKLOAD, recorded, 3)
    assert killed == ("oom", f"the kernel killed 2 for lack of memory; {late}")


def test_lost_output_is_in_the_facts_and_not_an_event(tmp_path: Path) -> None:
    (tmp_path / "latency-gitk-1.log").symlink_to("/dev/full")
    events = Events(tmp_path / "events.jsonl")
    streams = [Stream("gitk-1", ["echo", "one"], dict(os.environ))]
    recorder = RecorderProcess(
        program(), tmp_path, streams, until={"gitk-1"}, timeout_s=40, priority=0
    )
    recorded = recorder.wait()
    events.close()
    assert recorded and recorded["dropped"]["gitk-1"][0] == 2
    said = [event["event"] for event in read_events(tmp_path / "events.jsonl")]
    assert said == ["stream-start", "start", "stream-end", "end"]


class Here:
    """on_device.run with a measuring process, a device and a view that are made up."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, script: str) -> None:
        self.cleared: list[bool] = []
        self.tick: Callable[[], None] = lambda: None
        here = self
        self.out = tmp_path / "out"
        image, repo = tmp_path / "image", tmp_path / "repo"
        image.write_bytes(b"")
        subprocess.run(["git", "init", "-q", str(repo)], check=True)
        git = ["git", "-C", str(repo), "-c", "user.name=a", "-c", "user.email=a@b"]
        subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "x"], check=True)
        argv = ["--device", str(image), "--repo", str(repo), "--music", str(tmp_path)]
        self.options = arguments.parse([*argv, "--out", str(self.out), "--label", "v"])

        class View:
            def __init__(self, *_: object, **__: object) -> None: ...

            def __enter__(self) -> "View":
                return self

            def __exit__(self, *_: object) -> None: ...

            def tick(self) -> None:
                here.tick()

        def clear(dev: str) -> None:
            self.cleared.append((self.out / "v/1/status.json").exists())

        monkeypatch.setattr("os.geteuid", lambda: 0)
        monkeypatch.setattr("setup.crypt_lvm.ownership.clear_dead", clear)
        monkeypatch.setattr("setup.devices.check.check_device", lambda *_, **__: None)
        monkeypatch.setattr(on_device, "View", View)
        monkeypatch.setattr(on_device, "command", lambda *_: ["sh", "-c", script])

    def run(self) -> tuple[str, str]:
        _, state, why = on_device.run(self.options, Stopped(), [])
        return state, why

    def status(self) -> dict[str, Any]:
        status = json.loads((self.out / "v/1/status.json").read_text())
        assert isinstance(status, dict)
        return status


def test_a_run_that_says_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    here = Here(monkeypatch, tmp_path, "echo no dm-crypt >&2; exit 3")
    why = "the measuring process ended with status 3: no dm-crypt"
    assert here.run() == ("aborted", why)
    assert here.status()["why"] == why
    # Before the device was looked at, and again when the status had been written.
    assert here.cleared == [False, True]


def test_the_name_is_resolved_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    here = Here(monkeypatch, tmp_path, "exit 3")
    image, link = str(here.options.device), tmp_path / "link"
    link.symlink_to(image)
    seen: list[str | None] = []

    def check_device(dev: str, *, destroy_data: str | None) -> None:
        seen.extend((dev, destroy_data))
        link.unlink()
        link.symlink_to("/dev/null")

    def command(options: Options, *_: object) -> list[str]:
        seen.extend((options.device, options.destroy_data))
        return ["true"]

    monkeypatch.setattr("setup.devices.check.check_device", check_device)
    monkeypatch.setattr("setup.crypt_lvm.ownership.clear_dead", seen.append)
    monkeypatch.setattr(on_device, "command", command)
    here.options = replace(here.options, device=str(link), destroy_data=str(link))
    here.run()
    assert seen == [image] * 6


def test_data_of_a_device_that_is_not_spelled_again_are_kept(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    here = Here(monkeypatch, tmp_path, "exit 3")
    here.options = replace(here.options, destroy_data=str(tmp_path))
    with pytest.raises(UserError, match="spell the same device twice"):
        here.run()
    assert not here.cleared


def test_a_live_runs_programs_are_let_be(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    here = Here(monkeypatch, tmp_path, "exit 3")
    undone: list[bool] = []

    def refuse(dev: str) -> None:
        raise UserError(f"{dev} is in use by another run (pid 1)")

    undo = partial(undone.append, True)
    monkeypatch.setattr(on_device, "find", lambda _: replace(desktop.WORKLOAD, undo=undo))
    monkeypatch.setattr("setup.crypt_lvm.ownership.refuse_others", refuse)
    with pytest.raises(UserError, match="in use by another run"):
        here.run()
    assert (here.cleared, undone) == ([], [])


def test_the_device_is_cleared_though_the_workload_is_not_undone(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    here = Here(monkeypatch, tmp_path, "exit 3")
    undone = [False, True]

    def undo() -> None:
        if undone.pop():
            return
        raise OSError(16, "Device or resource busy")

    monkeypatch.setattr(on_device, "find", lambda _: replace(desktop.WORKLOAD, undo=undo))
    with pytest.raises(OSError, match="busy"):
        here.run()
    assert here.cleared == [False, True] and not undone


def test_a_view_that_fails_ends_the_measuring_process(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pid_file = tmp_path / "pid"
    here = Here(
        monkeypatch,
        tmp_path,
        f"trap 'sleep 1; echo undone; exit 0' TERM; echo $$ > {pid_file}\n"
        "while :; do sleep 0.1; done",
    )

    def tick() -> None:
        if pid_file.exists() and pid_file.read_text():
            raise OSError(5, "Input/output error")

    here.tick = tick
    with pytest.raises(OSError, match="Input/output"):
        here.run()
    assert not Path(f"/proc/{int(pid_file.read_text())}").exists()
    assert (here.out / "v/1/console.log").read_text() == "undone\n"
    assert here.status()["state"] == "aborted" and "Input/output" in here.status()["why"]
    assert here.cleared == [False, True]


def test_the_inner_command_says_every_parameter(tmp_path: Path) -> None:
    words = "--device /dev/x --destroy-data /dev/x --profile quick --gitk 2 --every 7 --passes 3"
    words += " --touch 0.5 --fs xfs --no-crypt --timeout 9 --repo /other --music /m"
    asked = arguments.parse(words.split())
    argv = measure_argv(asked, asked.variants[0], repo="/a repo", music="/music", run_dir=tmp_path)
    inner = arguments.parse(["--device", "/dev/x", *argv])
    assert inner.parameters == asked.parameters
    assert (inner.repo, inner.music, inner.run_dir) == ("/a repo", "/music", str(tmp_path))
    assert (inner.timeout, inner.destroy_data, inner.bare) == (9, "/dev/x", True)
    assert not inner.install


def test_borrowed_objects_are_copied(tmp_path: Path) -> None:
    def git(*words: str) -> str:
        command = ["git", "-c", "user.name=a", "-c", "user.email=a@b", *words]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    lender, borrower, scratch = tmp_path / "lender", tmp_path / "borrower", tmp_path / "scratch"
    scratch.mkdir()
    git("init", "-q", str(lender))
    git("-C", str(lender), "commit", "-q", "--allow-empty", "-m", "one")
    git("clone", "-q", "--shared", str(lender), str(borrower))
    git("-C", str(borrower), "commit", "-q", "--allow-empty", "-m", "two")
    desktop.fill(scratch, str(borrower))
    lender.rename(tmp_path / "gone")
    clone = scratch / "linux-2.6"
    assert git("-C", str(clone), "log", "--format=%s").split() == ["two", "one"]
    assert not (clone / ".git/objects/info/alternates").exists()
    with pytest.raises(UserError, match="cannot clone"):
        desktop.fill(scratch, str(tmp_path / "nothing"))


@pytest.mark.parametrize("folder", ["/a%USER%", "/a\nuid = 0", "/a ", "/a\\"])
def test_paths_that_rsyncd_conf_cannot_hold(folder: str) -> None:
    with pytest.raises(UserError):
        rsync_daemon.config(folder, None)
    with pytest.raises(UserError):
        rsync_daemon.config("/a", folder)


def test_root_reads_what_is_the_users_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    for uid, there in ((0, True), (1000, False)):
        monkeypatch.setattr("fake_player.feed.os.geteuid", lambda uid=uid: uid)
        lines = rsync_daemon.config("/a b", "/l").splitlines()
        assert ("uid = 0" in lines and "gid = 0" in lines) is there
        assert "path = /a b" in lines and "log file = /l" in lines


def test_relay_joins_both_and_ends_with_its_starter() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        ours, its = socket.socketpair()
        program = [sys.executable, relay.__file__, f"127.0.0.1:{server.getsockname()[1]}"]
        process = subprocess.Popen(program, stdin=its.fileno())
        its.close()
        far, _ = server.accept()
        ours.sendall(b"to")
        assert far.recv(9) == b"to"
        far.sendall(b"fro")
        assert ours.recv(9) == b"fro"
        began = time.monotonic()
        ours.close()
        # The other machine keeps its end open, and would for ever.
        assert process.wait(15) == 0
        assert time.monotonic() - began > relay.DRAIN_S - 1
        far.close()


def test_relay_that_reaches_nobody_says_so() -> None:
    program = [sys.executable, relay.__file__, "127.0.0.1:1"]
    done = subprocess.run(program, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr == "relay: 127.0.0.1:1: [Errno 111] Connection refused\n"
    assert relay.command("a;b c").endswith("relay.py 'a;b c'")


def test_nobody_says_go() -> None:
    code = "from contract import start_up; start_up.wait(); print('began')"
    for said, status in ((b"", 1), (b"go", 1), (b"go\n", 0)):
        done = subprocess.run(python(code), input=said, capture_output=True, cwd=ROOT)
        assert done.returncode == status
        assert done.stdout == b"ready\n" + (b"began\n" if status == 0 else b"")
