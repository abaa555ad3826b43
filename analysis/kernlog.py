# SPDX-License-Identifier: GPL-2.0-or-later
"""What the kernel said about itself: failures counted in kern.log, line by line.

A kernel that says "N callbacks suppressed", or whose ring lost records, said more than its log
holds: the count is then a lower bound (`at_least`).
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

RECORD = re.compile(r"(?:\[ *\d+\.\d+\] ?)?(?:<(\d+|missed)> ?)?")
# 2.6.31: "gitk: page allocation failure. order:2, mode:0x4020"; a colon after "failure" since 3.0.
PAGE_ALLOCATION = re.compile(r"page allocation failure[.:]")
# Who prints it: warn_alloc since 4.10, warn_alloc_failed before; 2.6.31 names __ratelimit for all.
SUPPRESSED = re.compile(r"(\w+): (\d+) (?:callbacks|messages) suppressed")
PAGE_ALLOCATION_PRINTERS = re.compile(r"warn_alloc|__alloc_pages|__ratelimit|printk")
HUNG_TASK = re.compile(r"task .*blocked (?:in .* )?for more than \d+ seconds")
HUNG_TASK_WARNINGS = 10  # kernel.hung_task_warnings: older kernels fall silent without a word
HUNG_TASKS_SUPPRESSED = "Future hung task reports are suppressed"
SOFT_LOCKUP = re.compile(r"BUG: soft lockup")
# The lines of one OOM kill, in the order in which a kernel prints them; no kernel prints all three.
OOM_STEPS = (
    re.compile(r"^oom-kill:"),  # since 4.20
    re.compile(r"[Oo]ut of memory.*: [Kk]ill process \d+"),  # up to 5.0
    re.compile(r"Killed process \d+"),
)


@dataclass
class KernelLog:
    """Counts; `at_least` names those that are a lower bound."""

    page_allocation_failures: int = 0
    oom_kills: int = 0
    hung_tasks: int = 0
    soft_lockups: int = 0
    suppressed: int = 0  # callbacks that the log says it left out
    missed: bool = False  # the kernel's ring lost records
    at_least: set[str] = field(default_factory=set)


def count_failures(lines: Iterable[str]) -> KernelLog:
    """Count the failures in the lines of a kern.log; memory does not grow with the log."""
    log = KernelLog()
    oom_step = len(OOM_STEPS)
    for line in lines:
        record = RECORD.match(line)
        log.missed = log.missed or (record is not None and record[1] == "missed")
        text = line[record.end() :] if record else line
        if text.startswith((" ", "\t")):
            continue  # a continuation: a backtrace or a table, no message of its own
        if PAGE_ALLOCATION.search(text):
            log.page_allocation_failures += 1
        elif HUNG_TASK.search(text):
            log.hung_tasks += 1
        elif HUNG_TASKS_SUPPRESSED in text:
            log.at_least.add("hung_tasks")
        elif SOFT_LOCKUP.search(text):
            log.soft_lockups += 1
        elif suppressed := SUPPRESSED.search(text):
            if PAGE_ALLOCATION_PRINTERS.match(suppressed[1]):
                log.suppressed += int(suppressed[2][:9])
                log.at_least.add("page_allocation_failures")
        else:
            step = next((i for i, each in enumerate(OOM_STEPS) if each.search(text)), None)
            if step is not None:
                log.oom_kills += step <= oom_step  # a later step belongs to the kill before it
                oom_step = step
    if log.hung_tasks >= HUNG_TASK_WARNINGS:
        log.at_least.add("hung_tasks")
    if log.missed:
        log.at_least |= {"page_allocation_failures", "oom_kills", "hung_tasks", "soft_lockups"}
    return log
