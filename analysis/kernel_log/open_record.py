# SPDX-License-Identifier: GPL-2.0-or-later
"""A record of a kernel's log: while its lines arrive, and when it is complete."""

from dataclasses import dataclass, field
from functools import lru_cache

from analysis.kernel_log import gfp, kinds
from analysis.kernel_log.lines import Message

MOST_LINES = 2000  # of a record that are kept; a table of tasks can be longer
MOST_COLUMNS = 2000  # characters of a line that are kept
_TASK = 64  # characters of a task's name; the kernel's own limit is 15
_NEAR_THE_END = 30  # registers that can follow the outermost frame

_LIMIT = "killed as a result of limit of"  # "Task in /a killed …", up to 4.18
_OOM = (kinds.OOM, kinds.MEMCG_OOM)

# Frames of the allocators, of the scheduler and of the message itself. The function that requested
# memory, or that waits, follows them.
_ALLOCATORS = (
    *("dump_stack", "show_stack", "unwind_backtrace", "show_trace", "dump_backtrace", "walk_stack"),
    *("warn_alloc", "__warn_alloc", "alloc_page", "__alloc_page", "get_free_page", "get_zeroed"),
    *("__get_free_page", "alloc_frozen_page", "__alloc_frozen_page", "kmalloc", "__kmalloc"),
    *("___kmalloc", "__do_kmalloc", "kzalloc", "krealloc", "kcalloc", "kvmalloc", "__kvmalloc"),
    *("kmem_", "__kmem_", "fallback_alloc", "cache_grow", "cache_alloc", "____cache_alloc"),
    *("__cache_alloc", "__slab_alloc", "___slab_alloc", "slab_alloc", "new_slab", "allocate_slab"),
    *("alloc_slab", "get_partial", "folio_alloc", "__folio_alloc", "vma_alloc_folio", "mempool_"),
    *("__vmalloc", "vmalloc", "vzalloc", "page_frag_alloc", "__page_frag", "__alloc_contig"),
    *("alloc_contig", "alloc_from_pcs", "refill_", "__refill_", "__pcs_", "kfree", "__alloc_from"),
    *("get_page_from_freelist", "__napi_alloc_frag", "__do_alloc_page", "alloc_fresh", "print_"),
    *("dump_header", "oom_kill", "out_of_memory", "__out_of_memory", "mem_cgroup_out_of"),
    *("mem_cgroup_oom", "try_charge", "__mem_cgroup_try", "mem_cgroup_try", "obj_cgroup_charge"),
    *("schedule", "__schedule", "io_schedule", "__cond_resched"),
)
_NOT_ALLOCATORS = ("kmalloc_reserve", "__kmalloc_reserve")  # net/core/skbuff.c's own


@dataclass(frozen=True)
class Record:
    """The content of a record; None: the record or this kernel does not have the value."""

    kind: str
    line: int  # line of the log, from 1, at which the record begins
    time: float | str | None = None  # seconds of the kernel's own clock, or the log's wall clock
    task: str | None = None  # the task that allocated, hung or ran; for an OOM kill the victim
    pid: int | None = None
    order: int | None = None  # 2**order pages
    mode: str | None = None  # the gfp mask in hex
    flags: str | None = None
    suppressed: int | None = None  # failures before this one that the kernel did not print
    caller: str | None = None  # the first function of the stack that is not the allocator's own
    stack: tuple[str, ...] = ()
    free_lists: dict[str, dict[int, int]] = field(default_factory=dict)  # zone: {KiB: blocks}
    seconds: float | None = None  # seconds for which the task or CPU was blocked, stuck or stalled
    cpu: int | None = None
    invoked_by: str | None = None  # the task that ran into an OOM kill
    kernel: str | None = None  # uname -r, from the record or from the log
    cut: bool = False  # the log ended, or a lockup came, before the record's own end
    mixed: bool = False  # lines of two records may be mixed up
    text: tuple[str, ...] = ()


class Open:
    """A record whose lines are still arriving."""

    def __init__(
        self,
        number: int,
        line: int,
        message: Message,
        beginning: kinds.Beginning,
        release: str | None,
    ) -> None:
        self.number = number
        self.kind = beginning.kind
        self.caller = message.caller
        self.count = 0  # messages of the log up to the record's last line
        self.last_time: float | str | None = None
        self.step = kinds.INVOKED
        self.suppressed = 0
        self.cut = self.interrupted = self.mixed = False
        self._line, self._time = line, message.time
        self._facts = dict(beginning.facts)
        self._release = release
        self._reached = kinds.DETAIL
        self._seen: set[int] = set()
        self._text: list[str] = []
        self._left_out = 0
        self.complete = False
        # Whether the memory state (Mem-Info) belongs to it; a failed vmalloc() shows it, too.
        self.allocates = (
            self.kind in (kinds.FAILURE, kinds.STALL, kinds.OOM) or "mode" in beginning.facts
        )
        if beginning.kind == kinds.OOM:
            self.oom(beginning)

    def oom(self, beginning: kinds.Beginning) -> None:
        """Add a further line of an OOM kill."""
        self.step = beginning.step
        self._facts |= beginning.facts
        self.complete = beginning.step == kinds.KILLED
        if "memcg" in self._facts:
            self.kind = kinds.MEMCG_OOM

    def takes(self, which: int, text: str) -> bool:
        """Whether a line of that part can follow the lines that the record has so far."""
        if which == self._reached == kinds.FRAME or self.kind == kinds.OTHER:
            return True
        if not self.allocates:
            return which <= kinds.FRAME and which != kinds.CPUSET
        if self.complete:
            return which in (kinds.TAIL, kinds.LAST) and kinds.LAST in self._seen
        if which >= kinds.ZONE:
            return True
        if which in (kinds.CPU, kinds.CPUSET):
            if which in self._seen or self._reached > which:
                return False
            pattern = kinds.CPU_LINE if which == kinds.CPU else kinds.CPUSET_LINE
            match = pattern.match(text)
            task = self._facts.get("invoker", self._facts.get("task"))
            return not (match and task) or match["task"] == task
        if which == kinds.FRAME:
            return self._reached <= kinds.FRAME
        if which == kinds.DETAIL:
            return self._reached < kinds.MEM_INFO or self.kind in _OOM
        return which not in self._seen and self._reached <= which

    def add(self, text: str, which: int, count: int, time: float | str | None) -> None:
        """Add a line; which: its part; count: messages of the log so far."""
        self.count, self.last_time, self.interrupted = count, time, False
        if self._reached < which:
            self._reached = min(which, kinds.ZONE)
        self._seen.add(which)
        if which == kinds.LAST and self.kind not in _OOM:
            self.complete = True
        elif which == kinds.CPU:
            self._cpu_line(text)
        elif which == kinds.DETAIL and self.kind == kinds.OOM and _LIMIT in text:
            self.kind = kinds.MEMCG_OOM
        if len(self._text) < MOST_LINES:
            if len(text) > MOST_COLUMNS:
                text = text[:MOST_COLUMNS] + "…"
            self._text.append(" " + text if which == kinds.FRAME else text)
        else:
            self._left_out += 1

    def _cpu_line(self, text: str) -> None:
        match = kinds.CPU_LINE.match(text)
        if not match:
            return
        task, cpu = match["task"], match["cpu"]
        self._release = match["release"]
        if "cpu" not in self._facts and cpu and self.kind in (kinds.HARD_LOCKUP, kinds.SOFT_LOCKUP):
            self._facts["cpu"] = cpu
        of_a_task = self.kind in (kinds.FAILURE, kinds.STALL, kinds.WARNING, *kinds.LOCKUPS)
        if of_a_task and self._facts.setdefault("task", task) == task:
            self._facts.setdefault("pid", match["pid"])

    def in_stack(self) -> bool:
        """Whether its last line so far is inside a stack."""
        return self._reached in (kinds.TRACE, kinds.FRAME) and not self._rested()

    def ended(self) -> bool:
        """Whether its own last line has arrived."""
        return self.complete or (not self.allocates and self._rested())

    def _rested(self) -> bool:
        return any(
            kinds.OUTERMOST.match((line.startswith(" ") and _frame(line)) or line)
            for line in self._text[-_NEAR_THE_END:]
        )

    def _where(self) -> tuple[str, ...]:
        """The function in which a locked-up CPU was, from its registers."""
        if self.kind not in kinds.LOCKUPS:
            return ()
        at = (line for line in self._text if line.startswith(("RIP: ", "EIP: ", "pc : ", "PC is")))
        return tuple(frame for line in at if (frame := _frame(line)))

    def whole(self) -> Record:
        """The record with the lines so far."""
        facts = self._facts
        mode, flags = facts.get("mode"), facts.get("flags")
        if mode and not flags:
            flags = gfp.decode(int(mode, 16), self._release)
        killed = self.step > kinds.INVOKED
        is_oom = self.kind in _OOM
        seconds = float(facts["seconds"]) if "seconds" in facts else None
        left = (f"… {self._left_out} more lines",) if self._left_out else ()
        stack = _stack(self._text)
        task, invoker = facts.get("task"), facts.get("invoker")
        return Record(
            kind=self.kind,
            line=self._line,
            time=self._time,
            task=task[:_TASK] if task else None,
            pid=_number(facts.get("pid")),
            order=_number(facts.get("order")),
            mode=mode,
            flags=flags,
            suppressed=self.suppressed or None,
            caller=wanted_by(self._where() + stack),
            stack=stack,
            free_lists=_free_lists(self._text) if self.allocates else {},
            seconds=int(facts["ms"]) / 1000 if "ms" in facts else seconds,
            cpu=_number(facts.get("cpu")),
            invoked_by=invoker[:_TASK] if invoker else None,
            kernel=self._release,
            cut=self.cut or self.interrupted or (is_oom and not killed),
            mixed=self.mixed,
            text=(*self._text, *left),
        )


def _number(text: str | None) -> int | None:
    return int(text) if text else None


def _stack(text: list[str]) -> tuple[str, ...]:
    return tuple(frame for line in text if line.startswith(" ") and (frame := _frame(line)))


@lru_cache(1024)
def _frame(line: str) -> str:
    """A frame as "foo+0x12/0x34 [module]"; an uncertain frame begins with "? "."""
    symbol = kinds.SYMBOL.search(line)
    offset = kinds.OFFSET.match(line, symbol.end(2)) if symbol else None
    if not symbol or not offset:
        return ""
    return f"{'? ' if symbol[1] else ''}{symbol[2]}{offset[0].replace(')', '')}"


def wanted_by(stack: tuple[str, ...]) -> str | None:
    """The function that called the allocator: "__alloc_skb", or "foo [module]".

    Frames with "?" may be left from earlier calls. They are used only if there are no others, as
    in kernels without frame pointers.
    """
    for sure in (True, False):
        for frame in stack:
            name, _, rest = frame.removeprefix("? ").partition("+")
            if sure and frame.startswith("? "):
                continue
            own = name.startswith(_ALLOCATORS) and not name.startswith(_NOT_ALLOCATORS)
            if own or kinds.OUTERMOST.match(name):
                continue
            module = rest.partition(" ")[2]
            for suffix in (".part.", ".isra.", ".constprop.", ".cold"):
                name = name.partition(suffix)[0]
            return f"{name} {module}".strip()
    return None


def _free_lists(text: list[str]) -> dict[str, dict[int, int]]:
    lists: dict[str, dict[int, int]] = {}
    for line in text:
        if "kB" in line and "*" in line and (match := kinds.FREE_LIST.match(line)):
            blocks = kinds.BLOCKS.findall(match["blocks"])
            lists[match["zone"]] = {int(size): int(count) for count, size in blocks}
    return lists
