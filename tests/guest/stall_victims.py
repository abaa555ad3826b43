# SPDX-License-Identifier: GPL-2.0-or-later
"""In the guest: the program that stalls, under the name of a gitk.

Usage: stall_victims.py ORDERS SAID (two FIFOs). It prints a line every 50 ms, and does what the
orders say: `prepare NAME {arguments}`, `go` (it stalls now, without a line), `end`. To SAID it
writes its pid, `prepared`, `stalled SECONDS` or `error TEXT`, a line each.
"""

import ctypes
import json
import mmap
import os
import select
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

TICK_S = 0.05
PAGE = mmap.PAGESIZE
Stall = Callable[[], None]
libc = ctypes.CDLL(None, use_errno=True)
lines = 0


def tick() -> None:
    """One line, as a gitk prints it."""
    global lines
    lines += 1
    os.write(1, f"pass 1 commits {lines}\n".encode())


def join(group: str) -> None:
    """Move to a cgroup."""
    (Path(group) / "cgroup.procs").write_text(str(os.getpid()))


def compute(seconds: float = 0.0, cpu_s: float = 0.0, group: str = "") -> Stall:
    """Compute for that long, or until that much CPU time was had."""
    if group:
        join(group)

    def stall() -> None:
        until, cpu = time.monotonic() + seconds, time.process_time() + cpu_s
        while time.monotonic() < until or time.process_time() < cpu:
            pass

    return stall


def swapped(mib: int, group: str, seconds: float = 0.0) -> Stall:
    """Touch memory that is in swap, a page here and there: once, or for that long."""
    size = mib << 20
    join(group)
    memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    ctypes.memset(ctypes.addressof(ctypes.c_char.from_buffer(memory)), 0x5A, size)
    until = time.monotonic() + 8
    # What was written out may stay in the swap cache: some of it will do.
    while out_of_memory(memory, size) < 0.4 * size / PAGE:
        tick()
        assert time.monotonic() < until, f"{out_of_memory(memory, size)} pages are in swap"
        # Lowered, it reclaims in our name until what the group holds fits.
        (Path(group) / "memory.high").write_text("0")
        (Path(group) / "memory.high").write_text("max")
        time.sleep(TICK_S)
    return lambda: touch(memory, size, seconds)


def touch(memory: mmap.mmap, size: int, seconds: float) -> None:
    """Read a byte of every 16th page; with seconds: of every fourth, until they are over."""
    until = time.monotonic() + seconds
    for offset in range(0, size, (4 if seconds else 16) * PAGE):
        memory[offset]
        if seconds and time.monotonic() > until:
            return


def out_of_memory(memory: mmap.mmap, size: int) -> int:
    """How many pages of the first size bytes of a mapping are not in memory (mincore(2))."""
    pages = size // PAGE
    vector = (ctypes.c_ubyte * pages)()
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    if libc.mincore(ctypes.c_void_p(address), ctypes.c_size_t(size), vector) != 0:
        raise OSError(ctypes.get_errno(), "mincore")
    return sum(not value & 1 for value in vector)


def evicted(fd: int, size: int) -> None:
    """Wait until no page of the file is in memory."""
    os.fsync(fd)
    with mmap.mmap(fd, size, flags=mmap.MAP_PRIVATE) as pages:
        until = time.monotonic() + 8
        while out_of_memory(pages, size) < size // PAGE:
            tick()
            assert time.monotonic() < until, "the file stays in memory"
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
            time.sleep(TICK_S)


def read(path: str, seconds: float = 0.0) -> Stall:
    """Read a file that is not in memory: 128 KiB of it, or for that long, a page at a time."""
    fd = os.open(path, os.O_RDWR)
    size = os.fstat(fd).st_size
    evicted(fd, size)
    if not seconds:
        return lambda: read_once(fd)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_RANDOM)

    def stall() -> None:
        until = time.monotonic() + seconds
        for offset in range(0, size, 16 * PAGE):
            os.pread(fd, PAGE, offset)
            if time.monotonic() > until:
                return

    return stall


def read_once(fd: int) -> None:
    """Read 128 KiB."""
    os.pread(fd, 128 << 10, 0)


def synced(path: str) -> Stall:
    """Write 256 KiB to a file, and fsync it."""
    fd = os.open(path, os.O_RDWR)
    data = os.urandom(256 << 10)

    def stall() -> None:
        os.pwrite(fd, data, 0)
        os.fsync(fd)

    stall()
    return stall


def written(path: str, mib: int, group: str = "") -> Stall:
    """Write that much to a file, without a sync."""
    if group:
        join(group)
    fd = os.open(path, os.O_RDWR)
    data = os.urandom(256 << 10)

    def stall() -> None:
        for number in range(mib * 4):
            os.pwrite(fd, data, number * len(data))

    return stall


def locked(path: str) -> Stall:
    """Write to a file whose inode another task has locked."""
    fd = os.open(path, os.O_RDWR)
    os.pwrite(fd, bytes(PAGE), 8 << 20)

    def stall() -> None:
        os.pwrite(fd, bytes(PAGE), 8 << 20)

    return stall


def ordered(path: str, value: str, seconds: float) -> Stall:
    """Have the kernel do what a write to that file asks for, again and again."""
    fd = os.open(path, os.O_WRONLY)

    def stall() -> None:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            os.pwrite(fd, value.encode(), 0)

    return stall


def grown(mib: int, seconds: float, group: str = "") -> Stall:
    """Touch new memory, until it is all there or the time is over."""
    if group:
        join(group)
    memory = mmap.mmap(-1, mib << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    memory.madvise(mmap.MADV_NOHUGEPAGE)

    def stall() -> None:
        until = time.monotonic() + seconds
        for offset in range(0, mib << 20, PAGE):
            memory[offset] = 1
            if time.monotonic() > until:
                return

    return stall


VICTIMS: dict[str, Callable[..., Stall]] = {
    one.__name__: one for one in (compute, swapped, read, synced, written, locked, ordered, grown)
}


def main() -> None:
    """Print lines and follow orders."""
    os.write(1, b"ready\n")
    sys.stdin.readline()
    orders = os.open(sys.argv[1], os.O_RDONLY | os.O_NONBLOCK)
    said = os.open(sys.argv[2], os.O_WRONLY)

    def say(text: str) -> None:
        os.write(said, text.encode() + b"\n")

    say(str(os.getpid()))
    stall: Any = None
    while True:
        tick()
        if not select.select([orders], [], [], TICK_S)[0]:
            continue
        word, _, rest = os.read(orders, 4096).decode().strip().partition(" ")
        try:
            if word == "prepare":
                stall = None  # and with it the memory of the last one
                name, _, arguments = rest.partition(" ")
                stall = VICTIMS[name](**json.loads(arguments))
                say("prepared")
            elif word == "go":
                tick()
                began = time.monotonic()
                stall()
                took = time.monotonic() - began
                tick()
                say(f"stalled {took:.3f}")
            else:
                return
        except (OSError, AssertionError) as error:
            say(f"error {type(error).__name__}: {error}")


if __name__ == "__main__":
    main()
