# SPDX-License-Identifier: GPL-2.0-or-later
"""A run whose third observer does not start, or dies, goes on, and says so."""

import functools
import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from monitors.launch import EvidenceProcess
from setup.errors import UserError
from workloads import observers
from workloads.inner import inner_argv
from workloads.observers import Observers
from workloads.options import parse
from workloads.results import Events, read_events, stream_names, write_meta

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


def test_it_dies_and_the_run_goes_on(tmp_path: Path) -> None:
    events = Events(tmp_path / "events.jsonl")
    one = Observers(OPTIONS, tmp_path, events, {})
    assert one.beacon and one.beacon.names == stream_names(1)
    assert one._evidence
    os.kill(one._evidence.pid, signal.SIGKILL)
    while one._evidence.alive():
        time.sleep(0.01)
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


def test_it_was_not_asked_for(tmp_path: Path) -> None:
    options = parse(["--gitk", "1", "--no-evidence"])
    assert "--no-evidence" in inner_argv(
        options, options.variants[0], repo="r", music="m", run_dir="d"
    )
    events = Events(tmp_path / "events.jsonl")
    one = Observers(options, tmp_path, events, {})
    assert one.beacon is None
    assert len(one.end()) == 1
    assert meta(tmp_path)["evidence"] == {"asked": False}
    assert not (tmp_path / "tasks.tsv").exists()
    events.close()
