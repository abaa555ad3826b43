# SPDX-License-Identifier: GPL-2.0-or-later
"""Measures how much memory observing takes: the free memory without the observers and with them.

The difference includes what the observers do not see of themselves: the kernel's memory for them
(BPF maps, page tables, stacks, the results device) and what their start left in the page cache.
"""

import os
import re
import time
from pathlib import Path
from typing import NamedTuple

PAGE_KIB = os.sysconf("SC_PAGESIZE") >> 10
# Rows of /proc/meminfo. Since 97105f0ab7b8 (5.3) VmallocUsed counts what is in use, including the
# stacks of tasks.
KERNEL = ("SUnreclaim", "PageTables", "SecPageTables", "Percpu", "VmallocUsed")
SETTLING_S = 0.5  # some freed memory is given back with a delay


class Memory(NamedTuple):
    """The machine's memory in KiB: not in use, locked by programs, held by the kernel."""

    free_kib: int
    locked_kib: int
    kernel_kib: int


def clean_page_cache() -> None:
    """Write dirty pages out and drop the page cache."""
    os.sync()
    Path("/proc/sys/vm/drop_caches").write_text("3\n")


def read_memory() -> Memory:
    """The machine's memory after dropping the page cache (/proc/meminfo, /proc/zoneinfo)."""
    clean_page_cache()
    time.sleep(SETTLING_S)
    clean_page_cache()
    return parse_memory(Path("/proc/meminfo").read_text(), Path("/proc/zoneinfo").read_text())


def parse_memory(meminfo: str, zoneinfo: str) -> Memory:
    """The memory by the texts of /proc/meminfo and /proc/zoneinfo.

    A page that a CPU keeps for its next allocation is free, but MemFree does not count it.
    """
    kib = {name: int(value) for name, value in re.findall(r"^(\w+):\s+(\d+)", meminfo, re.M)}
    in_hand = sum(int(count) for count in re.findall(r"^\s+count:\s+(\d+)", zoneinfo, re.M))
    return Memory(
        free_kib=kib["MemFree"] + PAGE_KIB * in_hand,
        locked_kib=kib.get("Mlocked", 0),
        kernel_kib=sum(kib.get(name, 0) for name in KERNEL),
    )


def cost(without: Memory, observed: Memory) -> dict[str, int]:
    """The cost for meta.json, in KiB: `memory_kib` is the total; its parts are locked memory, the
    kernel's memory, and the rest (page cache and memory that is not locked)."""
    memory = without.free_kib - observed.free_kib
    locked = observed.locked_kib - without.locked_kib
    kernel = observed.kernel_kib - without.kernel_kib
    return {
        "memory_kib": memory,
        "locked_kib": locked,
        "kernel_kib": kernel,
        "rest_kib": memory - locked - kernel,
    }
