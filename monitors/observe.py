# SPDX-License-Identifier: GPL-2.0-or-later
"""Keep an observer from becoming a victim of what it observes, and say what that costs.

Imports next to nothing: all that an observer imports is locked in memory for the whole run.
"""

import gc
import os
import time

MCL_CURRENT, MCL_FUTURE, MCL_ONFAULT = 1, 2, 4
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD, M_ARENA_MAX = -1, -3, -8
RESERVE_BYTES = 512 << 10
STACK_BYTES = 128 << 10

_began = {"cpu": 0.0, "time": 0.0, "major": 0}


def become_observer(priority: int, reserve: int = RESERVE_BYTES) -> dict[str, object]:
    """Lock this process in memory and give it SCHED_FIFO `priority`; return what was achieved.

    Call it after all imports, after everything that the observer does was done once (only what was
    touched is locked), before its threads start and before the load. In this order:
    1. small thread stacks; one malloc arena that is never trimmed, with `reserve` bytes in hand
       (a later page fault would wait in direct reclaim behind everybody else);
    2. garbage collected, frozen, and the collector off;
    3. mlockall(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT) (ONFAULT since 4.4; without it if refused),
       then mlock of every executable mapping, so that no code is ever read from disk again;
    4. oom_score_adj -1000; 5. SCHED_FIFO with SCHED_RESET_ON_FORK: children, and threads too, start
       as ordinary ones (a thread calls `raise_thread` for itself);
    6. the zero of `cost()`.
    What is not permitted is said in `problems`, and the rest is done all the same.
    """
    problems: list[str] = []
    facts: dict[str, object] = {"problems": problems}
    _small_stacks()
    facts["locked"] = _lock(reserve, problems)
    try:
        with open("/proc/self/oom_score_adj", "wb", buffering=0) as handle:
            handle.write(b"-1000")
        facts["oom_score_adj"] = -1000
    except OSError as error:
        problems.append(f"oom_score_adj: {error.strerror}")
    facts["fifo"] = raise_thread(priority, problems)
    begin()
    return facts


def begin() -> None:
    """The zero of cost(): called again when the workload starts."""
    _began.update(cpu=time.process_time(), time=time.monotonic(), major=major_faults())


def raise_thread(priority: int, problems: list[str]) -> int:
    """Give the calling thread SCHED_FIFO at priority (0 and a word in problems if refused)."""
    try:
        policy = os.SCHED_FIFO | os.SCHED_RESET_ON_FORK
        os.sched_setscheduler(0, policy, os.sched_param(priority))
    except OSError as error:
        problems.append(f"SCHED_FIFO {priority}: {error.strerror}")
        return 0
    return priority


def cost() -> dict[str, object]:
    """What this process has cost since begin(), for the `observer` event.

    cpu_s: user + system seconds; elapsed_s; locked_kib: `Locked` of /proc/self/smaps_rollup (4.14;
    shared pages count by their share); vmlck_kib: `VmLck` of /proc/self/status, which counts the
    whole of every locked mapping, present or not; major_faults. What cannot be read is None.
    """
    return {
        "cpu_s": round(time.process_time() - _began["cpu"], 4),
        "elapsed_s": round(time.monotonic() - _began["time"], 3),
        "locked_kib": _field("/proc/self/smaps_rollup", b"Locked:"),
        "vmlck_kib": _field("/proc/self/status", b"VmLck:"),
        "major_faults": int(major_faults() - _began["major"]),
    }


def major_faults() -> int:
    """Major page faults of this process so far (/proc/self/stat, field 12)."""
    with open("/proc/self/stat", "rb", buffering=0) as handle:
        return int(handle.read(1024).rpartition(b")")[2].split()[9])


def _field(path: str, name: bytes) -> int | None:
    try:
        with open(path, "rb", buffering=0) as handle:
            for line in handle.read(16384).split(b"\n"):
                if line.startswith(name):
                    return int(line.split()[1])
    except OSError:
        pass
    return None


def _small_stacks() -> None:
    import _thread

    _thread.stack_size(STACK_BYTES)


def _lock(reserve: int, problems: list[str]) -> str:
    """Lock memory: `onfault`, `all` or, if not permitted, an empty string."""
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    libc.mlock.argtypes = (ctypes.c_void_p, ctypes.c_size_t)
    libc.malloc.restype = ctypes.c_void_p
    libc.free.argtypes = (ctypes.c_void_p,)
    for option, value in (
        (M_ARENA_MAX, 1),
        (M_TRIM_THRESHOLD, 1 << 30),
        (M_MMAP_THRESHOLD, 1 << 25),
    ):
        libc.mallopt(option, value)
    gc.collect()
    libc.malloc_trim(ctypes.c_size_t(0))  # what only the start needed is not to be locked
    block = libc.malloc(ctypes.c_size_t(reserve))
    if block:
        ctypes.memset(block, 1, reserve)
        libc.free(block)
    gc.freeze()
    gc.disable()
    how = "onfault"
    if libc.mlockall(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT) != 0:
        how = "all"
        if libc.mlockall(MCL_CURRENT | MCL_FUTURE) != 0:
            problems.append(f"mlockall: {os.strerror(ctypes.get_errno())}")
            return ""
    with open("/proc/self/maps", "rb") as handle:
        lines = handle.read().splitlines()
    for line in lines:
        span, flags = line.split()[:2]
        if b"x" in flags and not line.endswith((b"[vdso]", b"[vsyscall]")):
            start, end = (int(part, 16) for part in span.split(b"-"))
            if libc.mlock(start, end - start) != 0:
                problems.append(f"mlock: {os.strerror(ctypes.get_errno())}")
                break
    return how
