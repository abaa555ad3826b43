# SPDX-License-Identifier: GPL-2.0-or-later
"""Whether a run that was not done at its limit went on until then, by the lines that left it."""

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
    """(state, why) of a run that was not done at its limit: UNFINISHED, or HUNG if nothing went on.

    streams: those of which a line is progress; patience_s: how long all of them may be silent, by
    the run's own clock.
    """
    silent = _until(run_dir, streams) - max((_last(run_dir, one) for one in streams), default=0.0)
    if streams and silent >= patience_s:
        return HUNG, f"{why}, and no line came in the last {silent:.0f} s ({', '.join(streams)})"
    return UNFINISHED, why


def _until(run_dir: Path, streams: Sequence[str]) -> float:
    """Elapsed of the run's end, or else of the last thing that left it."""
    ends = [event["elapsed"] for event in read_events(run_dir / EVENTS) if event["event"] == "end"]
    known = [float(end) for end in ends if isinstance(end, int | float)]
    rows = [line.partition("\t")[0] for line in _tail(run_dir / f"{VMSTAT}.tsv")]
    return max([*known, *(_last(run_dir, one) for one in streams), *_numbers(rows), 0.0])


def _last(run_dir: Path, stream: str) -> float:
    """Elapsed of the stream's last line; 0 without any."""
    lines = [line.split(" ", 2) for line in _tail(run_dir / latency_log(stream))]
    return max(_numbers(line[0] for line in lines if line[2:] != [END]), default=0.0)


def _numbers(words: Iterable[str]) -> list[float]:
    """Those of the words that are seconds: heads of tables are not, nor is what is damaged."""
    return [float(word) for word in words if SECONDS.fullmatch(word)]


def _tail(path: Path) -> list[str]:
    """Whole lines at the end of a file."""
    try:
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            file.seek(max(0, size - TAIL_BYTES))
            *lines, _ = file.read().split(b"\n")
    except FileNotFoundError:
        return []
    # The first one may be the rest of a line.
    return [line.decode("utf-8", "replace") for line in (lines[1:] if size > TAIL_BYTES else lines)]
