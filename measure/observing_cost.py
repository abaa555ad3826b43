# SPDX-License-Identifier: GPL-2.0-or-later
"""How much memory observing takes: what the machine has free without the observers and with them.

Not what the observers say of themselves: the kernel's memory for them (BPF maps, page tables,
stacks, the way out for results) is in it, and so is what their start left in the page cache.
"""

import os
import re
import time
from pathlib import Path
from typing import NamedTuple

PAGE_KIB = os.sysconf("SC_PAGESIZE") >> 10
# Of /proc/meminfo; VmallocUsed counts what is used since 97105f0ab7b8 (5.3), the stacks of tasks
# among it.
KERNEL = ("SUnreclaim", "PageTables", "SecPageTables", "Percpu", "VmallocUsed")
SETTLING_S = 0.5  # for what was freed and is given back a moment later


class Memory(NamedTuple):
    """KiB of the machine's memory: not in use, locked by programs, held by the kernel."""

    free_kib: int
    locked_kib: int
    kernel_kib: int


def clean_page_cache() -> None:
    """Write everything out and drop all that the kernel can read again."""
    os.sync()
    Path("/proc/sys/vm/drop_caches").write_text("3\n")


def read_memory() -> Memory:
    """The machine's memory without what the kernel can drop (/proc/meminfo, /proc/zoneinfo)."""
    clean_page_cache()
    time.sleep(SETTLING_S)
    clean_page_cache()
    return parse_memory(Path("/proc/meminfo").read_text(), Path("/proc/zoneinfo").read_text())


def parse_memory(meminfo: str, zoneinfo: str) -> Memory:
    """From the texts of /proc/meminfo and /proc/zoneinfo.

    A page that a CPU holds in hand for its next allocation is free, but not in MemFree.
    """
    kib = {name: int(value) for name, value in re.findall(r"^(\w+):\s+(\d+)", meminfo, re.M)}
    in_hand = sum(int(count) for count in re.findall(r"^\s+count:\s+(\d+)", zoneinfo, re.M))
    return Memory(
        free_kib=kib["MemFree"] + PAGE_KIB * in_hand,
        locked_kib=kib.get("Mlocked", 0),
        kernel_kib=sum(kib.get(name, 0) for name in KERNEL),
    )


def cost(without: Memory, observed: Memory) -> dict[str, int]:
    """What meta.json says of it: `memory_kib` in all, and of that what is locked, the kernel's, and
    the rest (page cache, and memory that is not locked)."""
    memory = without.free_kib - observed.free_kib
    locked = observed.locked_kib - without.locked_kib
    kernel = observed.kernel_kib - without.kernel_kib
    return {
        "memory_kib": memory,
        "locked_kib": locked,
        "kernel_kib": kernel,
        "rest_kib": memory - locked - kernel,
    }
