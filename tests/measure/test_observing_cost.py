# SPDX-License-Identifier: GPL-2.0-or-later
"""What observing costs, from texts of /proc with known answers."""

from measure.observing_cost import PAGE_KIB, Memory, cost, parse_memory

MEMINFO = """\
MemTotal:         201748 kB
MemFree:          100000 kB
MemAvailable:     150000 kB
Mlocked:             100 kB
SUnreclaim:         9000 kB
KernelStack:        1088 kB
PageTables:          500 kB
VmallocUsed:        8000 kB
"""
ZONEINFO = """\
Node 0, zone    DMA32
  pages free     25000
        min      11
  pagesets
    cpu: 0
              count: 1000
              high:  2000
              batch: 63
    cpu: 1
              count: 24
              high:  2000
"""


def test_pages_in_a_cpus_hand_are_free() -> None:
    memory = parse_memory(MEMINFO, ZONEINFO)
    assert memory.free_kib == 100_000 + 1024 * PAGE_KIB
    assert memory.locked_kib == 100
    assert memory.kernel_kib == 9000 + 500 + 8000  # stacks are in what vmalloc has


def test_the_cost_is_what_is_no_longer_free() -> None:
    without = Memory(free_kib=100_000, locked_kib=100, kernel_kib=17_500)
    observed = Memory(free_kib=93_000, locked_kib=4_100, kernel_kib=19_000)
    assert cost(without, observed) == {
        "memory_kib": 7000,
        "locked_kib": 4000,
        "kernel_kib": 1500,
        "rest_kib": 1500,
    }
