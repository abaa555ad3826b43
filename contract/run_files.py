# SPDX-License-Identifier: GPL-2.0-or-later
"""The names that a result is made of (docs/FORMAT.md): files, streams, observers, states.

Imports nothing: the observers, which are locked in memory, take their names from here too.
"""

FORMAT_VERSION = 1
PLAN_FILE, CONFIG = "plan.toml", "config"
META, STATUS, EVENTS = "meta.json", "status.json", "events.jsonl"
KERN_LOG, CONSOLE_LOG = "kern.log", "console.log"
HANG = "hang"  # folder: what was got out of a kernel that hangs
REPORT = "report"  # folder, beside the variants: what is made of the results
FAILURES_LOG = "allocation-failures.log"  # made of the others by whoever reports
VMSTAT, MEMINFO, PRESSURE, DISKSTATS = SAMPLED = ("vmstat", "meminfo", "psi", "diskstats")
STAMP, LATE = "elapsed_s", "late_s"  # the first columns of what is sampled
TASKS, BLOCKED, TRACE = "tasks.tsv", "blocked.tsv", "trace.tsv"
ALLOCFAIL, RECLAIM = "allocfail.tsv", "reclaim.tsv"
EVIDENCE = (TASKS, BLOCKED, TRACE, ALLOCFAIL, RECLAIM)

LATENCY = "latency-"  # and the stream's name, .log
GITK = "gitk-"  # and a number from 1 on
HEARTBEAT, PLAYER, ECHO = "heartbeat", "player", "echo"
RECORDER, SAMPLER, EVIDENCE_OBSERVER = "recorder", "sampler", "evidence"

COMPLETED, ABORTED = "completed", "aborted"
HUNG, PANICKED, OOM, LOST = "hung", "panicked", "oom", "lost"
FAILED = (HUNG, PANICKED, OOM, LOST)  # the machine or the workload did not live to the end
STATES = (COMPLETED, *FAILED, ABORTED)


def latency_log(stream: str) -> str:
    """The name of a stream's log."""
    return f"{LATENCY}{stream}.log"


def stream_names(gitks: int, echo: bool = False) -> list[str]:
    """The streams of the desktop workload, in the order in which they start; echo: its load too."""
    paced = [HEARTBEAT, PLAYER, *([ECHO] if echo else [])]
    return [*paced, *(f"{GITK}{n}" for n in range(1, gitks + 1))]


def appended_files(gitks: int, echo: bool = False) -> list[str]:
    """Names of the files that a run appends to while it runs."""
    return [
        EVENTS,
        *map(latency_log, stream_names(gitks, echo)),
        *(f"{name}.tsv" for name in SAMPLED),
        *EVIDENCE,
        KERN_LOG,
    ]
