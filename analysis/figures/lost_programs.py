# SPDX-License-Identifier: GPL-2.0-or-later
"""Finds the programs of the desktop that were killed in a run, when, and after how much freeze.

A killed program no longer stalls, so killing programs saves stalled seconds. A campaign with
remedies therefore has both figures for a run, and does not add them (docs/my-desktop-froze.md).
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from signal import SIGKILL, SIGTERM
from typing import Any

from analysis.figures import counters
from analysis.figures.stalls import PACED, freezes, kind
from analysis.reading.latency_log import number
from analysis.reading.load import Run
from contract.remedy import KILLS, SWAPS
from contract.run_files import HEARTBEAT, PLAYER

BESIDE = (HEARTBEAT, PLAYER)  # without these two no desktop is left
BY_SIGNAL = (-SIGTERM, -SIGKILL)
ROUNDING_S = 0.05  # s between stamps of the same moment by two clocks of the recorder
# earlyoom 1.7: "sending SIGTERM to process 812 uid 0 …"; nohang 0.2.0: "Sending SIGTERM to …";
# systemd-oomd 252: "Killed /desktop-freeze-slice/gitk-1.scope due to memory …".
SENT = re.compile(r"\bsending SIG(?:TERM|KILL) to\b|^Killed /\S+ due to\b", re.IGNORECASE)


@dataclass(frozen=True)
class LostProgram:
    """A stream that a signal ended; at: elapsed s; frozen: seconds before with any stall."""

    stream: str
    at: float
    frozen: float


def lost_programs(run: Run) -> list[LostProgram]:
    """The desktop's programs that were killed before the run's end, in order of time.

    Programs that the recorder ended at the end of the run do not count.
    """
    recorder = _recorder(run)
    end, outcome = number(recorder.get("elapsed")), recorder.get("outcome")
    early = recorder.get("early")
    if end is None or not isinstance(early, dict):
        return []
    watched = {*run.workload.subjects, *BESIDE}
    lost = []
    for event in run.events:
        name, at = event.get("stream"), number(event.get("elapsed"))
        if event.get("event") != "stream-end" or name not in watched or at is None:
            continue
        # A program that never ends by itself may handle SIGTERM and exit with status 0.
        if event.get("status") not in (BY_SIGNAL if name not in early else (0, *BY_SIGNAL)):
            continue
        # The run ends with the last of the programs that should end.
        last = outcome == "done" and kind(str(name)) not in PACED
        if last or name in early or at < end - ROUNDING_S:
            lost.append(LostProgram(str(name), at, _frozen_until(run, at)))
    return sorted(lost, key=lambda program: program.at)


def _recorder(run: Run) -> dict[str, Any]:
    ends = (
        event for event in run.events if event.get("event") == "observer" and "outcome" in event
    )
    return next(ends, {})


def _frozen_until(run: Run, moment: float) -> float:
    """Seconds before `moment` (elapsed s) in which at least one subject stalled."""
    spans = freezes(run.subjects)
    return sum(min(end, moment) - begin for begin, end in spans if begin < moment)


def lives_on(run: Run) -> bool:
    """Whether neither heartbeat nor player was killed."""
    return not any(program.stream in BESIDE for program in lost_programs(run))


def at_its_limit(run: Run) -> bool:
    """Whether the run ended at its time limit."""
    return _recorder(run).get("outcome") == "deadline"


def acted(run: Run, acts: str) -> bool:
    """Whether a remedy did anything in the run; acts: what such a remedy does (contract.remedy).

    Its log, the kernel's counters and the ends of the programs show it.
    """
    if acts == KILLS:
        log = run.fact("remedy", "log")
        lines: Sequence[Any] = log if isinstance(log, list) else ()
        sent = any(SENT.search(line) for line in lines if isinstance(line, str))
        kernels = run.column("vmstat", "oom_kill")
        killed = kernels is not None and len(kernels[1]) > 0 and kernels[1][-1] > kernels[1][0]
        return sent or bool(killed) or bool(lost_programs(run))
    if acts == SWAPS:
        ways = (counters.SWAP_OUT, counters.ZSWAP_OUT)
        return any(counters.moved_mib(run, way) for way in ways)
    return True
