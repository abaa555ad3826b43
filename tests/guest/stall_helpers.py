# SPDX-License-Identifier: GPL-2.0-or-later
"""In the guest: programs that stand in a victim's way. Usage: stall_helpers.py NAME ARGUMENTS.

Each prints `ready`, waits for a line on its standard input, acts, and then waits to be killed.
"""

import ctypes
import fcntl
import mmap
import os
import sys
import time
from pathlib import Path

F_SETPIPE_SZ = 1031
PIPE_BYTES = 1 << 20
PIECE = 4 << 20


def ready() -> None:
    """Say so, and wait for the word."""
    os.write(1, b"ready\n")
    os.read(0, 16)


def hog(priority: str, seconds: str) -> None:
    """Take the CPU at real-time priority."""
    until = float(seconds)
    ready()
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(int(priority)))
    until += time.monotonic()
    while time.monotonic() < until:
        pass


def holder(path: str) -> None:
    """Write a few bytes into a page that is not in memory: the inode is locked until it is."""
    fd = os.open(path, os.O_RDWR)
    os.fsync(fd)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    ready()
    os.pwrite(fd, b"held", 0)


def filler(leave_mib: str) -> None:
    """Fill the memory, but for that much."""
    kept = []
    while _meminfo("MemFree") >> 10 > int(leave_mib):
        piece = mmap.mmap(-1, PIECE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        ctypes.memset(ctypes.addressof(ctypes.c_char.from_buffer(piece)), 0xA5, PIECE)
        kept.append(piece)
    ready()


def pinner(path: str, mib: str, group: str) -> None:
    """Hold page cache in pipes: reclaim finds it, and can never have it."""
    (Path(group) / "cgroup.procs").write_text(str(os.getpid()))
    fd = os.open(path, os.O_RDWR | os.O_CREAT)
    os.ftruncate(fd, int(mib) << 20)
    for _ in range(int(mib)):
        _, into = os.pipe()
        fcntl.fcntl(into, F_SETPIPE_SZ, PIPE_BYTES)
        left = PIPE_BYTES
        while left:
            left -= os.splice(fd, into, left)
    ready()


def _meminfo(name: str) -> int:
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1])
    raise KeyError(name)


HELPERS = {one.__name__: one for one in (hog, holder, filler, pinner)}

if __name__ == "__main__":
    HELPERS[sys.argv[1]](*sys.argv[2:])
    time.sleep(60)
