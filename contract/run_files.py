# SPDX-License-Identifier: GPL-2.0-or-later
"""The names that results use: files, streams, observers, states.

docs/reference/results-format.md describes them. The observers in C use the same names
(monitors/).
"""

import re
from collections.abc import Iterable

FORMAT_VERSION = 1
PLAN_FILE, CONFIG = "plan.toml", "config"
META, STATUS, EVENTS = "meta.json", "status.json", "events.jsonl"
KERN_LOG, CONSOLE_LOG = "kern.log", "console.log"
RUN_NUMBER = r"[1-9][0-9]{0,8}"  # name of a run's folder, in its variant's folder
HANG = "hang"  # folder: diagnostics of a kernel that hangs
REPORT = "report"  # folder, beside the variants' folders: reports and pictures
FAILURES_LOG = "allocation-failures.log"  # derived from the other files for a report
VMSTAT, MEMINFO, PRESSURE, DISKSTATS = SAMPLED = ("vmstat", "meminfo", "psi", "diskstats")
SLABINFO = "slabinfo"  # sampled only if a workload asks for it
TABLES = (*SAMPLED, SLABINFO)
STAMP, LATE = "elapsed_s", "late_s"  # the first columns of sampled tables
TASKS, BLOCKED, TRACE = "tasks.tsv", "blocked.tsv", "trace.tsv"
ALLOCFAIL, RECLAIM = "allocfail.tsv", "reclaim.tsv"
EVIDENCE = (TASKS, BLOCKED, TRACE, ALLOCFAIL, RECLAIM)

LATENCY = "latency-"  # followed by the stream's name and .log
GITK = "gitk-"  # followed by a number, from 1
GITK_LINE = re.compile(r"pass ([0-9]{1,9}) commits ([0-9]{1,9})")
HEARTBEAT, PLAYER, ECHO = "heartbeat", "player", "echo"
WORK = "work"  # serial number of a VM's disk under test
RECORDER, SAMPLER, EVIDENCE_OBSERVER = "recorder", "sampler", "evidence"
KEYS = "keys"  # the observer that presses keys, and the stream of what it observed

# In a guest with further packages: a line "NAME VERSION" for each.
GUEST_PACKAGES = "/etc/desktop-freeze-packages"

COMPLETED, ABORTED = "completed", "aborted"
HUNG, PANICKED, OOM, LOST = "hung", "panicked", "oom", "lost"
FAILED = (HUNG, PANICKED, OOM, LOST)  # the machine or the workload died before its end
UNFINISHED = "unfinished"  # still running at its time limit: figures are lower bounds
STATES = (COMPLETED, UNFINISHED, *FAILED, ABORTED)


def commits_read(line: str) -> tuple[int, int] | None:
    """A gitk's pass, from 1, and how many commits it has read in it; None for another line."""
    match = GITK_LINE.fullmatch(line)
    return (int(match[1]), int(match[2])) if match else None


def latency_log(stream: str) -> str:
    """The file name of a stream's log."""
    return f"{LATENCY}{stream}.log"


def more_disks(count: int) -> list[str]:
    """Serial numbers of a VM's further disks, which are also their prefixes in diskstats.tsv."""
    return [f"data-{number}" for number in range(1, count + 1)]


def appended_files(streams: Iterable[str], *, slabs: bool = False) -> list[str]:
    """Names of the files that a run with these streams appends to.

    slabs: whether slab caches are sampled, too.
    """
    return [
        EVENTS,
        *map(latency_log, (*streams, KEYS)),
        *(f"{name}.tsv" for name in (TABLES if slabs else SAMPLED)),
        *EVIDENCE,
        KERN_LOG,
    ]
