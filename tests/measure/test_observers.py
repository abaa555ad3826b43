# SPDX-License-Identifier: GPL-2.0-or-later
"""A run whose third observer does not start, or dies, goes on, and says so."""

import functools
import os
import signal
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from contract.run_record import Events, read_events, write_meta
from errors import UserError
from measure import key_programs, observers
from measure.observers import Observers
from monitors.launch import EvidenceProcess
from run.arguments import parse
from run.measure_command import measure_argv

pytestmark = pytest.mark.clock

OPTIONS = parse(["--gitk", "1"])


@pytest.fixture(autouse=True)
def no_tracing(monkeypatch: pytest.MonkeyPatch) -> None:
    """This machine is not traced."""
    quiet = functools.partial(EvidenceProcess, trace=False, priority=0)
    monkeypatch.setattr(observers, "EvidenceProcess", quiet)


def meta(folder: Path) -> dict[str, Any]:
    """All `meta` events merged, later ones winning, and objects key by key, as write_meta does."""
    found: dict[str, Any] = {}
    for event in read_events(folder / "events.jsonl"):
        for key, value in event.items():
            merges = isinstance(value, dict) and isinstance(found.get(key), dict)
            found[key] = {**found[key], **value} if merges else value
    return found


def running(program: str) -> int:
    """The pid of this process's child that runs it."""
    for path in Path("/proc/self/task").glob("*/children"):
        for pid in path.read_text().split():
            if program in Path(f"/proc/{pid}/cmdline").read_text():
                return int(pid)
    raise AssertionError(f"{program} does not run")


def test_it_dies_and_the_run_goes_on(tmp_path: Path) -> None:
    events = Events(tmp_path / "events.jsonl")
    one = Observers(OPTIONS, tmp_path, events, {})
    assert one.beacon and one.beacon.names == ["heartbeat", "player", "gitk-1"]
    evidence = running("evidence")
    os.kill(evidence, signal.SIGKILL)
    os.waitid(os.P_PID, evidence, os.WEXITED | os.WNOWAIT)  # dead, and for its owner to reap
    one.begin(time.monotonic(), ["recorder: a problem"])
    time.sleep(0.3)
    sampled, observed = one.end()
    assert sampled and sampled["samples"] >= 1 and observed is None
    found = meta(tmp_path)
    assert "recorder: a problem" in found["observer_problems"]
    assert "evidence: its process died" in found["observer_problems"]
    assert found["evidence"]["asked"] and "taskstats_version" in found["evidence"]
    write_meta(tmp_path, {})
    events.close()


def test_it_does_not_start_and_the_run_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object, **__: object) -> None:
        raise UserError("the evidence did not start (status 1)")

    monkeypatch.setattr(observers, "EvidenceProcess", refused)
    events = Events(tmp_path / "events.jsonl")
    one = Observers(OPTIONS, tmp_path, events, {})
    assert one.beacon is None
    one.begin(time.monotonic(), [])
    assert len(one.end()) == 1
    found = meta(tmp_path)
    assert "the evidence did not start (status 1)" in found["observer_problems"]
    assert found["evidence"] == {"asked": True}
    events.close()


def test_keys_are_pressed_beside_them_and_a_prober_that_dies_is_named(tmp_path: Path) -> None:
    options = parse(["--gitk", "1", "--no-evidence"])
    events = Events(tmp_path / "events.jsonl")
    shell, editor, pager = key_programs.in_terminals()
    no_program = replace(editor, argv=["/no/such/program"])
    one = Observers(options, tmp_path, events, {}, [shell, no_program, pager])
    one.prepare()
    one.begin(time.monotonic(), [])
    prober = running("\0keys\0")
    os.kill(prober, signal.SIGKILL)
    os.waitid(os.P_PID, prober, os.WEXITED | os.WNOWAIT)  # dead, and for its owner to reap
    pressed, sampled = one.end()
    assert pressed is None and sampled
    found = meta(tmp_path)
    assert found["keys"]["programs"]["pager"] == " ".join(pager.argv)
    assert "keys: editor: /no/such/program: No such file or directory" in found["observer_problems"]
    assert "keys: its process died" in found["observer_problems"]
    events.close()


def test_it_was_not_asked_for(tmp_path: Path) -> None:
    options = parse(["--gitk", "1", "--no-evidence"])
    assert "--no-evidence" in measure_argv(
        options, options.variants[0], repo="r", music="m", run_dir="d"
    )
    events = Events(tmp_path / "events.jsonl")
    one = Observers(options, tmp_path, events, {})
    assert one.beacon is None
    assert len(one.end()) == 1
    assert meta(tmp_path)["evidence"] == {"asked": False}
    assert not (tmp_path / "tasks.tsv").exists()
    events.close()
