# SPDX-License-Identifier: GPL-2.0-or-later
"""The run's own record, and what is made of it."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contract.run_files import appended_files
from contract.run_record import Events, close, read_events, write_meta, write_status
from graphs.bundle.packed_runs import is_kept
from vm.classify import classify, emulation_fault


def test_events_are_whole_lines_even_if_the_last_was_cut(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    events = Events(path)
    events.write("phase", name="crypt")
    events.write("start", t0=12.5)
    events.close()
    path.write_bytes(path.read_bytes() + b'{"t": 13, "event": "sta')
    assert [event["event"] for event in read_events(path)] == ["phase", "start"]


@given(st.binary(max_size=300))
def test_any_bytes_are_read_without_an_exception(tmp_path_factory, data: bytes) -> None:  # type: ignore[no-untyped-def]
    path = tmp_path_factory.mktemp("e") / "events.jsonl"
    path.write_bytes(data)
    assert all(isinstance(event["event"], str) for event in read_events(path))


def test_meta_merges_host_and_guest(tmp_path: Path) -> None:
    events = Events(tmp_path / "events.jsonl")
    events.write("meta", kernel={"release": "6.1.0"}, cpus=2)
    events.write("meta", swap={"device": "/dev/dm-2"})
    events.write("start", t0=9.25)
    events.write("observer", name="sampler", locked_kib=100)
    events.write("observer", name="recorder", locked_kib=200)
    write_meta(tmp_path, {"kernel": {"spec": "debian:6.1"}, "cpus": 1})
    meta = json.loads((tmp_path / "meta.json").read_text())
    assert meta["kernel"] == {"spec": "debian:6.1", "release": "6.1.0"}
    assert meta["cpus"] == 2
    assert meta["t0"] == 9.25
    assert [o["name"] for o in meta["observers"]] == ["sampler", "recorder"]
    assert meta["format"] == 1


def test_status_knows_its_states(tmp_path: Path) -> None:
    write_status(tmp_path, "hung", "silent", elapsed_s=None)
    assert json.loads((tmp_path / "status.json").read_text())["state"] == "hung"
    with pytest.raises(ValueError):
        write_status(tmp_path, "fine", "")
    assert [p.name for p in tmp_path.iterdir()] == ["status.json"]


def test_a_run_appends_to_these_files() -> None:
    names = appended_files([f"gitk-{n}" for n in range(1, 17)])
    assert len(set(names)) == len(names)
    evidence = {f"{name}.tsv" for name in ("tasks", "blocked", "trace", "allocfail", "reclaim")}
    assert evidence | {"latency-gitk-16.log", "kern.log", "events.jsonl"} <= set(names)
    assert all(is_kept(name) for name in names)  # of a bundle


def test_the_guests_own_word_comes_first(tmp_path: Path) -> None:
    console = tmp_path / "console.log"
    console.write_bytes(b"[ 1.0] Kernel panic - not syncing: sysrq triggered crash\r\n")
    said = [{"event": "status", "state": "completed", "why": "done"}]
    assert classify([], console, ("hung", "silent")) == ("hung", "silent")
    # The status record is written before the teardown, which may still kill the kernel.
    state, why = classify(said, console, None)
    assert state == "panicked" and "sysrq triggered crash" in why and "completed: done" in why
    state, why = classify(said, console, ("hung", "no power-off"))
    assert state == "hung" and "completed: done" in why
    assert classify([], console, None) == ("panicked", "kernel panic: sysrq triggered crash")
    console.write_bytes(b"DESKTOP-FREEZE-INIT failed: no root disk\r\n")
    assert classify([], console, None) == ("aborted", "the guest was not set up: no root disk")
    console.write_bytes(b"login:")
    assert classify(said, console, None) == ("completed", "done")
    assert classify(said, console, ("aborted", "Ctrl-C")) == ("completed", "done")
    assert classify([], console, None)[0] == "lost"
    # What QEMU itself dies of says nothing of the kernel; what the guest said before, does.
    assert classify([], console, None, "SIGSEGV") == ("aborted", "QEMU died of SIGSEGV")
    assert classify(said, console, None, "SIGSEGV") == ("completed", "done")
    assert classify([], tmp_path / "absent", None)[0] == "lost"


@pytest.mark.parametrize(
    ("status", "state"),
    [(1, "aborted"), (126, "aborted"), (127, "aborted"), (0, "aborted"), (137, "lost")],
)
def test_a_command_that_ended_without_a_word_is_no_fault_of_the_kernels(
    tmp_path: Path, status: int, state: str
) -> None:
    """Of a signal's it may be: the kernel kills for lack of memory."""
    console = tmp_path / "console.log"
    said = f"desktop-freeze: the guest's command ended with status {status}"
    console.write_text(f"/job/run/command: 1: python3: not found\r\n{said}\r\n")
    found, why = classify([], console, None)
    assert found == state
    if state == "aborted":
        assert why == f"the guest's command ended with status {status}"
    else:
        assert why == "the session in the guest was killed (signal 9)"
        log = (
            "[   35.127983] Out of memory: Killed process 252 (python3) total-vm:24356kB\r\n"
            "[   35.175553] Memory cgroup out of memory: Killed process 206 (python3) UID:0\r\n"
        )
        console.write_text(f"{log}Killed\r\n{said}\r\n")
        assert classify([], console, None)[1] == f"{why}; OOM kills in the kernel's log: 2"
    done = [{"event": "status", "state": "completed", "why": "done"}]
    assert classify(done, console, None) == ("completed", "done")


@pytest.mark.parametrize(
    ("flags", "impossible"),
    [
        ("00000246", False),
        ("00010286", False),
        ("00200246", False),
        ("003f7fd7", False),
        ("40138202", True),  # a double fault in kmem_cache_alloc under QEMU 7.2's TCG
        ("00008202", True),
        ("0000000000000246", False),
    ],
)
def test_an_emulator_that_loses_the_flags_is_no_kernels_panic(
    tmp_path: Path, flags: str, impossible: bool
) -> None:
    console = tmp_path / "console.log"
    console.write_text(
        "[   49.02] Oops: double fault: 0000 [#1] PREEMPT SMP NOPTI\n"
        f"[   49.03] RSP: 0018:ffffd15e4006bce0 EFLAGS: {flags}\n"
        "[   49.03] Kernel panic - not syncing: Fatal exception in interrupt\n"
    )
    state, why = classify([], console, None)
    assert state == ("aborted" if impossible else "panicked")
    assert (flags in why) is impossible
    assert bool(emulation_fault(console.read_bytes())) is impossible


@pytest.mark.parametrize(
    ("oops", "code", "emulated"),
    [
        # 7.3-rc7 under QEMU 7.2's TCG, while static keys were switched, 2 s after its start.
        ("Oops: int3: 0000 [#1] SMP NOPTI", "4d 8b 13 48 8b 3d c8 4e 9d 02 66 <90> 0f 01 f9", True),
        ("int3: 0000 [#1] PREEMPT SMP NOPTI", "48 8b 3d c8 4e 9d 02 66 <90> 0f 01 f9", True),
        ("Oops: int3: 0000 [#1] SMP NOPTI", "cc cc cc <cc> cc cc", False),  # a jump into padding
        ("Oops: int3: 0000 [#1] SMP NOPTI", "Bad RIP value.", False),
        ("Oops: 0002 [#1] SMP NOPTI", "4d 8b 13 48 8b 3d c8 4e 9d 02 66 <90> 0f 01 f9", False),
    ],
)
def test_an_emulator_that_runs_code_as_it_was_is_no_kernels_panic(
    tmp_path: Path, oops: str, code: str, emulated: bool
) -> None:
    console = tmp_path / "console.log"
    console.write_text(
        f"[    2.091174] {oops}\n[    2.093083] RIP: 0010:ktime_get_with_offset+0x51/0x1f0\n"
        f"[    2.093731] Code: {code}\n[    2.094561] RSP: 0018:ffffcd2e40013b18 EFLAGS: 00000246\n"
        "[    2.200000] Kernel panic - not syncing: Attempted to kill init! exitcode=0x0000000b\n"
    )
    state, why = classify([], console, None)
    assert (state, "int3" in why) == (("aborted", True) if emulated else ("panicked", False))


@pytest.mark.parametrize(
    "line",
    [
        '{"event": "start"}',
        '{"event": "end"}',
        '{"event": "status", "state": "completed"}',
        '{"event": "status", "state": "fine", "why": "x"}',
        '{"event": "status", "state": [], "why": "x"}',
        '{"event": "phase"}',
        '{"event": "meta", "x": ' + "[" * 900 + "]" * 900 + "}",
        '{"event": "meta", "x": ' + "[" * 100_000 + "}",
    ],
)
def test_an_event_that_lacks_what_it_has_to_have_ends_no_campaign(
    tmp_path: Path, line: str
) -> None:
    good = '{"t": 1, "event": "status", "state": "completed", "why": "done"}\n'
    (tmp_path / "events.jsonl").write_text(good + line + "\n")
    events = read_events(tmp_path / "events.jsonl")
    assert [event["event"] for event in events] == ["status"]
    state, why = classify(events, tmp_path / "console.log", None)
    close(tmp_path, {"cpus": 1}, state, why)
    status = json.loads((tmp_path / "status.json").read_text())
    assert (status["state"], status["elapsed_s"]) == ("completed", None)
