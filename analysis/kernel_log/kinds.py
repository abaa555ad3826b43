# SPDX-License-Identifier: GPL-2.0-or-later
"""Recognises the kernel's messages: which begin a record, and of what kind; which belong to it.

The wordings are those of mm/page_alloc.c, mm/oom_kill.c, mm/memcontrol.c, kernel/hung_task.c,
kernel/watchdog.c, arch/x86/kernel/nmi.c and kernel/rcu/ from 2.6.31 on. The lines that follow come
from lib/dump_stack.c and lib/show_mem.c (since 6.4 mm/show_mem.c).
"""

import re
from dataclasses import dataclass
from functools import lru_cache

FAILURE = "page_allocation_failure"
STALL = "page_allocation_stall"
OOM = "oom_kill"
MEMCG_OOM = "memcg_oom_kill"
HUNG_TASK = "hung_task"
SOFT_LOCKUP = "soft_lockup"
HARD_LOCKUP = "hard_lockup"
RCU_STALL = "rcu_stall"
WARNING = "page_alloc_warning"
OTHER = "other"  # a dump of another kind; it takes the lines that follow it
KINDS = {
    FAILURE: "page allocation failure",
    STALL: "page allocation stall",
    OOM: "OOM kill",
    MEMCG_OOM: "memory cgroup OOM kill",
    HUNG_TASK: "hung task",
    SOFT_LOCKUP: "soft lockup",
    HARD_LOCKUP: "hard lockup",
    RCU_STALL: "RCU stall",
    WARNING: "page_alloc warning",
}
LOCKUPS = (SOFT_LOCKUP, HARD_LOCKUP, RCU_STALL)

# A line can begin a record, or be of interest otherwise, only if it contains one of these.
LITERALS = (
    *(b"page allocation ", b"vmalloc", b"invoked oom-killer", b"oom-kill:", b"ut of memory"),
    *(b"illed process ", b"for more than", b"Future hung task", b"soft lockup", b"LOCKUP"),
    *(b" stall", b"mm/page_alloc.c:", b"suppressed", b"Linux version ", b"<missed>"),
)

_MASK = r"(?P<mode>0x[0-9a-f]{1,16})(?:\((?P<flags>[^()]{0,600})\))?"
# 2.6.31: "gitk: page allocation failure. order:2, mode:0x4020"; a colon after "failure" since
# 2.6.39 (a238ab5b0239), names since 4.6, nodemask since 4.11, cpuset in the same line since 4.20.
_FAILURE = re.compile(
    r"(?P<task>.{0,255}?): page allocation failure[.:] ?order:(?P<order>\d{1,9})"
    rf"(?:, mode:{_MASK})?"
)
_FAILURE_CUT = re.compile(r"(?P<task>.{0,255}?): page allocation failure[.:]")
# warn_alloc() from 4.10 (63f53dea0c98) to 4.14 (400e22499dd9).
_STALL = re.compile(
    r"(?P<task>.{0,255}?): page allocation stalls for (?P<ms>\d{1,12})ms, order:(?P<order>\d{1,9})"
    rf"(?:, mode:{_MASK})?"
)
_VMALLOC = re.compile(
    r"(?P<task>.{0,255}?): vmalloc(?: error)?: (?:allocation failure|size )[^()]{0,200}?"
    rf", mode:{_MASK}"
)
_WARNING = re.compile(
    r"WARNING: (?:CPU: (?P<cpu>\d{1,6}) PID: (?P<pid>\d{1,10}) )?(?:at )?mm/page_alloc\.c:\d+"
    r"(?: at \S+, CPU#(?P<cpu2>\d{1,6}): (?P<task>.{0,255})/(?P<pid2>\d{1,10}))?"
)
_INVOKED = re.compile(
    rf"(?P<invoker>.{{0,255}}?) invoked oom-killer: gfp_mask={_MASK},?(?: nodemask=\S+)? "
    r"order=(?P<order>-?\d{1,9})"
)
_OOM_KILL = re.compile(
    r"oom-kill:constraint=(?P<constraint>\w+)(?:.*,task=(?P<task>.{0,64}?),pid=(?P<pid>\d{1,10}))?"
)
_KILL = re.compile(
    r"(?P<memcg>Memory cgroup o|O)ut of memory(?: \([^()]{0,80}\))?: "
    r"(?:[Kk]ill|(?P<done>Killed)) process (?P<pid>\d{1,10})(?:, UID \d+,)? \((?P<task>.{0,255}?)\)"
    r"(?= total-vm| score | or | vsz|,|\s*$)"
)
_KILLED = re.compile(
    r"Killed process (?P<pid>\d{1,10})(?:, UID \d+,)? \((?P<task>.{0,255}?)\)"
    r"(?= total-vm| vsz|,|\s*$)"
)
_HUNG = re.compile(
    r"INFO: task (?P<task>.{0,255}):(?P<pid>\d{1,10}) (?:is )?blocked (?:.{0,60} )?"
    r"for more than (?P<seconds>\d{1,9}) seconds"
)
_SOFT = re.compile(
    r"(?:[\w ]{1,20}: )?BUG: soft lockup(?: - CPU#(?P<cpu>\d{1,6}) stuck for (?P<seconds>\d{1,9})s!"
    r"(?: \[(?P<task>.{0,255}):(?P<pid>\d{1,10})\])?)?"
)
_HARD = re.compile(
    r"(?:[\w .:-]{1,60}: )?(?:Watchdog detected hard LOCKUP on cpu ?(?P<cpu>\d{1,6})"
    r"|NMI Watchdog detected LOCKUP on CPU ?(?P<cpu2>\d{1,6})"
    r"|CPU:? ?(?P<cpu3>\d{1,6}) Hard LOCKUP)"
)
_RCU = re.compile(
    r"(?:rcu: )?INFO: \S{0,40}rcu\S{0,40} (?:self-)?detected (?:expedited )?(?:CPU )?(?:\d+ )?"
    r"stalls?\b(?: on CPU[ {]+(?P<cpu>\d{1,6}))?",
    re.IGNORECASE,
)
_BEGINNINGS = (
    ("page allocation f", FAILURE, _FAILURE),
    ("page allocation f", FAILURE, _FAILURE_CUT),
    ("page allocation s", STALL, _STALL),
    ("vmalloc", WARNING, _VMALLOC),
    ("mm/page_alloc.c:", WARNING, _WARNING),
    ("invoked oom-killer", OOM, _INVOKED),
    ("oom-kill:", OOM, _OOM_KILL),
    ("ut of memory", OOM, _KILL),
    ("Killed process", OOM, _KILLED),
    ("for more than", HUNG_TASK, _HUNG),
    ("soft lockup", SOFT_LOCKUP, _SOFT),
    ("LOCKUP", HARD_LOCKUP, _HARD),
    (" stall", RCU_STALL, _RCU),
)
# The lines of an OOM kill, in the order in which a kernel prints them; no kernel prints all.
INVOKED, CHOSEN, SENTENCED, KILLED = range(4)
_STEPS = {_INVOKED: INVOKED, _OOM_KILL: CHOSEN, _KILLED: KILLED}

# The function that reports suppressed messages: warn_alloc since 4.10, warn_alloc_failed before.
# 2.6.31 names __ratelimit, older kernels printk, for all messages (SUPPRESSED_BY_ANY). The line of
# a kill is never suppressed.
SUPPRESSED = re.compile(r"(\w{1,60}): (\d{1,9}) (?:callbacks|messages) suppressed")
SUPPRESSED_FAILURES = re.compile(r"(?:warn_alloc(?:_failed)?|__alloc_pages\w*)$")
SUPPRESSED_BY_ANY = ("__ratelimit", "printk", "printk_ratelimit")
HUNG_TASKS_SUPPRESSED = "Future hung task reports are suppressed"
_DUMP = re.compile(
    r"-{3,}\[ cut here|(?:[\w -]{1,30}: )?(?:BUG|WARNING|INFO|Oops|SysRq|sysrq|Kernel panic)\b"
    r"|general protection fault|Unable to handle kernel|Internal error: "
)


@dataclass(frozen=True)
class Beginning:
    """The content of a line that begins a record (if `step` > INVOKED: that continues a kill)."""

    kind: str
    facts: dict[str, str]
    step: int = INVOKED


def beginning(text: str) -> Beginning | None:
    """The record that this line begins; None if none. Kind OTHER: a dump of another kind."""
    for literal, kind, pattern in _BEGINNINGS:
        if literal in text and (match := pattern.match(text)):
            facts = {key.rstrip("23"): value for key, value in match.groupdict().items() if value}
            if kind != OOM:
                return Beginning(kind, facts)
            if "memcg" in facts and facts["memcg"] == "O":
                del facts["memcg"]
            if "_MEMCG" in facts.get("constraint", ""):
                facts["memcg"] = "constraint"
            done = KILLED if "done" in facts else SENTENCED
            return Beginning(kind, facts, _STEPS.get(pattern, done))
    return Beginning(OTHER, {}) if _DUMP.match(text) else None


# The parts of a record, in their order, and the lines that show them. Plain numbers for speed: in a
# flood of failures every line is compared with them.
DETAIL = 0  # may come anywhere
CPUSET = 1
CPU = 2
TRACE = 3  # "Call Trace:"
FRAME = 4
MEM_INFO = 5  # "Mem-Info:"
ZONE = 6
TAIL = 7
LAST = 8  # the last line that every kernel's show_mem() prints
_NAMED = {"DETAIL": DETAIL, "TRACE": TRACE, "MEM_INFO": MEM_INFO, "ZONE": ZONE, "TAIL": TAIL}
_NAMED |= {"LAST": LAST}

# "CPU: 0 PID: 7 Comm: gitk Not tainted 4.1.0 #1"; "Pid: 7, comm: gitk Not tainted 2.6.31.5 #1".
CPU_LINE = re.compile(
    r"(?:CPU:? ?(?P<cpu>\d{1,6}) (?:UID: \d+ )?PID: |Pid: )(?P<pid>\d{1,10}),? "
    r"[Cc]omm: (?P<task>.{0,255}?)(?: Kdump: \w+)? (?:Not tainted|Tainted:[ A-Z()-]{0,80}?)"
    r" \(?(?P<release>\d[^\s()]{2,80})"
)
CPUSET_LINE = re.compile(r"(?P<task>.{0,255}) cpuset=.{0,4096} mems_allowed=")
# A frame of any architecture: arm prints "A from B+0x4/0x8", where B is the frame.
SYMBOL = re.compile(r"((?:[?!] +)?)\(?([\w.$]{1,512})(?=\+0x[0-9a-f]{1,8}/0x)")
OFFSET = re.compile(r"\+0x[0-9a-f]{1,8}/0x[0-9a-f]{1,8}\)?(?: \[[^\]\s]{1,80}\])?")
FREE_LIST = re.compile(
    r"(?P<zone>(?:Node \d+ )?\w+): (?P<blocks>(?:\d+\*\d+kB (?:\(\w+\) )?){1,40})= ?\d+ ?kB"
)
BLOCKS = re.compile(r"(\d+)\*(\d+)kB")
_PARTS = re.compile(
    r"""
      (?P<ZONE>(?:Node\ \d+\ )?(?:\w+:?\ )?(?:(?:free|active_anon):\d+|\d+\*\d+)kB
        |lowmem_reserve\[\]|(?:Node\ \d+\ )?\w+\ per-cpu:|CPU\s+\d+:\ (?:hi|[Hh]ot):
        |(?:[a-z_]+:\d+\ ?)+$|Node\ \d+\ hugepages_|hugepages_total=)
    | (?P<LAST>\d+\ pages\ reserved|\d+\ reserved\ pages)
    | (?P<TAIL>\d+\ (?:total\ pagecache\ )?pages\b|(?:Free|Total)\ swap|Swap\ cache\ stats
        |\d+\ (?:free|slab)\ pages
        |SL[AU]B:\ Unable\ to\ allocate|(?:cache|node\ \d+):\ |Memory\ allocations:
        |[\d.]+\ ?[KMGT]?i?B?\ +\d+\ \S+:\d+\ |Tasks\ state|\[\ +pid\ +\]|\[\ *\d+\]\ +\d+\ +\d+
        |Unreclaimable\ slab|Name\ +Used|[\w-]+\ +\d+KB\ +\d+KB)
    | (?P<MEM_INFO>Mem-[Ii]nfo:)
    | (?P<TRACE>(?:Call\ [Tt]race|Backtrace):)
    | (?P<DETAIL></?[A-Z#][A-Z0-9]{1,15}>|>?\ *[0-9a-f]{4,16}:?(?:\ +[0-9a-f]{4,16})+\ *$
        |Hardware\ name:|Tainted:|Workqueue:|Stack:|Code:|Modules\ linked\ in:
        |\[last\ unloaded|---\[\ end\ trace
        |(?:[RE][A-Z0-9]{1,2}|[CDF]S|[CD]R\d|ORIG_RAX|PKRU|[rx]\d+|pc|lr|sp|pstate)\ ?:\ ?
        |Exception\ stack|Not\ tainted|"echo\ 0\ >|task:|[^\ ].{0,40}\ [RSDTtXZIW]\ [0-9a-f\ ]+\d
        |rcu:\ |\(?(?:detected\ by|t=\d)|Task\ dump\ for|NMI\ backtrace|Sending\ NMI|irq\ event
        |\d+-[.!o]{1,4}:|INFO:\ (?:lockdep\ is|task\ .{1,300}\ blocked\ on)|Showing\ all\ locks
        |(?:memory|swap|kmem|memory\+swap|Memory\ cgroup|Task\ in|Tasks\ in)\b|[a-z_0-9]+\ \d+$
        |\[<[0-9a-f]+>\]\ )
    """,
    re.VERBOSE,
)
_NOT_A_FRAME = ("RIP", "EIP", "PC is", "pc :", "lr :", "LR is", "NIP", "IP:", "WARNING", "BUG")
# The outermost frames of a stack: only registers follow them.
OUTERMOST = re.compile(
    r"</TASK>|---\[ end trace|(?:\? )?(?:ret_from_\w+|child_rip|kernel_thread_\w+|entry_SYSCALL\w*"
    r"|entry_INT80\w*|system_call\w*|sysenter\w*|syscall_call|tracesys|ret_fast_syscall|el0_?\w*|__sys_trace_return"
    r"|secondary_startup\w*|start_secondary|start_kernel|x86_64_start_\w+|asm_exc_page_fault)\b"
)


@lru_cache(1024)  # a flood of failures repeats the same lines
def part(text: str) -> int | None:
    """The part of a record that this line (without blanks around it) may be; None: no part."""
    if "+0x" in text and "/0x" in text and not text.startswith(_NOT_A_FRAME):
        return FRAME
    match = _PARTS.match(text, 0, 1024)
    if match and match.lastgroup:
        return _NAMED[match.lastgroup]
    if text.startswith(("CPU", "Pid:")) and CPU_LINE.match(text):
        return CPU
    return CPUSET if " mems_allowed=" in text else None
