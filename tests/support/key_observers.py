# SPDX-License-Identifier: GPL-2.0-or-later
"""Observers that press keys, started for a test, and what they recorded."""

import os
import signal
import time
from pathlib import Path

from analysis.reading.keys import Keys, read_keys
from analysis.reading.latency_log import parse_lines
from analysis.reading.streams import Stream, make_stream
from monitors.launch import KeysProcess
from monitors.streams import KeyProgram
from setup.observers import program

LOG = "latency-keys.log"


def prober(
    folder: Path, typed_at: list[KeyProgram], *, step_s: float, gap_s: float, priority: int = 0
) -> KeysProcess:
    """An observer whose programs are ready."""
    observer = KeysProcess(
        program(), folder, typed_at, step_s=step_s, gap_s=gap_s, priority=priority
    )
    problems = observer.prepare()
    assert problems == [], problems
    return observer


def children(parent: int) -> dict[str, int]:
    """The pids of a process's children, by what they are."""
    pids = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
    return {Path(f"/proc/{pid}/comm").read_text().strip(): int(pid) for pid in pids}


def start_beside_stopped(observer: KeysProcess, pid: int, for_s: float) -> float:
    """Start it beside a process that is stopped for for_s; returns when it went on (s after t0)."""
    t0 = time.monotonic() + 0.1
    os.kill(pid, signal.SIGSTOP)
    try:
        observer.start(t0)
        time.sleep(t0 + for_s - time.monotonic())
    finally:
        os.kill(pid, signal.SIGCONT)
    return time.monotonic() - t0


def faults(pid: int) -> tuple[int, int]:
    """The minor and the major page faults of a process."""
    stat = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(stat[7]), int(stat[9])


def key_stream(folder: Path) -> Stream:
    """The stream that an observer recorded in this folder."""
    raw = (folder / LOG).read_bytes()
    stream = make_stream(folder / LOG, "keys", parse_lines(raw), [], True, 0.0, [])
    assert stream
    return stream


def keys_of(folder: Path) -> Keys:
    """The keys that an observer recorded in this folder."""
    stream = key_stream(folder)
    return read_keys(stream, stream.until)
