# SPDX-License-Identifier: GPL-2.0-or-later
"""The names that a result is made of: files, streams, observers, states.

docs/reference/results-format.md describes them. The observers' side in C has the same names
(monitors/).
"""

from collections.abc import Iterable

FORMAT_VERSION = 1
PLAN_FILE, CONFIG = "plan.toml", "config"
META, STATUS, EVENTS = "meta.json", "status.json", "events.jsonl"
KERN_LOG, CONSOLE_LOG = "kern.log", "console.log"
RUN_NUMBER = r"[1-9][0-9]{0,8}"  # what a run's folder is called, in its variant's
HANG = "hang"  # folder: what was got out of a kernel that hangs
REPORT = "report"  # folder, beside the variants: what is made of the results
FAILURES_LOG = "allocation-failures.log"  # made of the others by whoever reports
VMSTAT, MEMINFO, PRESSURE, DISKSTATS = SAMPLED = ("vmstat", "meminfo", "psi", "diskstats")
SLABINFO = "slabinfo"  # sampled only if a workload asks for it
TABLES = (*SAMPLED, SLABINFO)
STAMP, LATE = "elapsed_s", "late_s"  # the first columns of what is sampled
TASKS, BLOCKED, TRACE = "tasks.tsv", "blocked.tsv", "trace.tsv"
ALLOCFAIL, RECLAIM = "allocfail.tsv", "reclaim.tsv"
EVIDENCE = (TASKS, BLOCKED, TRACE, ALLOCFAIL, RECLAIM)

LATENCY = "latency-"  # and the stream's name, .log
GITK = "gitk-"  # and a number from 1 on
HEARTBEAT, PLAYER, ECHO = "heartbeat", "player", "echo"
WORK = "work"  # the serial of a VM's disk under test
RECORDER, SAMPLER, EVIDENCE_OBSERVER = "recorder", "sampler", "evidence"
KEYS = "keys"  # the observer that presses keys, and the stream of what it saw

COMPLETED, ABORTED = "completed", "aborted"
HUNG, PANICKED, OOM, LOST = "hung", "panicked", "oom", "lost"
FAILED = (HUNG, PANICKED, OOM, LOST)  # the machine or the workload did not live to the end
UNFINISHED = "unfinished"  # it went on, and was not done at its limit: figures are "at least"
STATES = (COMPLETED, UNFINISHED, *FAILED, ABORTED)


def latency_log(stream: str) -> str:
    """The name of a stream's log."""
    return f"{LATENCY}{stream}.log"


def more_disks(count: int) -> list[str]:
    """Serials of a VM's disks beside the one under test, and their prefixes in diskstats.tsv."""
    return [f"data-{number}" for number in range(1, count + 1)]


def appended_files(streams: Iterable[str], *, slabs: bool = False) -> list[str]:
    """Names of the files that a run with these streams appends to while it runs.

    slabs: slab caches are sampled, too.
    """
    return [
        EVENTS,
        *map(latency_log, (*streams, KEYS)),
        *(f"{name}.tsv" for name in (TABLES if slabs else SAMPLED)),
        *EVIDENCE,
        KERN_LOG,
    ]
