# SPDX-License-Identifier: GPL-2.0-or-later
"""Decides by the lines of a run that reached its time limit whether it still made progress."""

import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from contract.run_files import EVENTS, HUNG, UNFINISHED, VMSTAT, latency_log
from contract.run_record import read_events

TAIL_BYTES = 64 << 10  # more than the longest line, and a row of any table
SECONDS = re.compile(r"[0-9]{1,9}(\.[0-9]{1,9})?")
END = "[end]"  # a stream's last line, which no program printed


def at_limit(run_dir: Path, streams: Sequence[str], patience_s: float, why: str) -> tuple[str, str]:
    """(state, why) of a run that reached its limit: UNFINISHED, or HUNG if nothing made progress.

    streams: those whose lines are progress; patience_s: how many seconds of the run's own clock
    all of them may be silent.
    """
    last = max((_last(run_dir, stream) for stream in streams), default=0.0)
    silent = _until(run_dir, streams) - last
    if streams and silent >= patience_s:
        return HUNG, f"{why}, and no line came in the last {silent:.0f} s ({', '.join(streams)})"
    return UNFINISHED, why


def _until(run_dir: Path, streams: Sequence[str]) -> float:
    """The elapsed seconds at the run's end, or else at the last line of any of its files."""
    ends = [event["elapsed"] for event in read_events(run_dir / EVENTS) if event["event"] == "end"]
    known = [float(end) for end in ends if isinstance(end, int | float)]
    rows = [line.partition("\t")[0] for line in _tail(run_dir / f"{VMSTAT}.tsv")]
    return max([*known, *(_last(run_dir, stream) for stream in streams), *_numbers(rows), 0.0])


def _last(run_dir: Path, stream: str) -> float:
    """The elapsed seconds at the stream's last line; 0 without a line."""
    lines = [line.split(" ", 2) for line in _tail(run_dir / latency_log(stream))]
    return max(_numbers(line[0] for line in lines if line[2:] != [END]), default=0.0)


def _numbers(words: Iterable[str]) -> list[float]:
    """The words that are seconds, as numbers; heads of tables and damaged words are left out."""
    return [float(word) for word in words if SECONDS.fullmatch(word)]


def _tail(path: Path) -> list[str]:
    """The complete lines in the last TAIL_BYTES of a file."""
    try:
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            file.seek(max(0, size - TAIL_BYTES))
            *lines, _ = file.read().split(b"\n")
    except FileNotFoundError:
        return []
    # The first one may be incomplete.
    return [line.decode("utf-8", "replace") for line in (lines[1:] if size > TAIL_BYTES else lines)]
