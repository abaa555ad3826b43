# SPDX-License-Identifier: GPL-2.0-or-later
"""How fast a machine does an observer's tasks, to compare the guest with the host."""

import os
import resource
from collections.abc import Callable

READS, LOOPS = 4000, 800
LINES = 400  # of a table like /proc/vmstat


def paces() -> dict[str, float]:
    """The CPU us of a pread of /proc/vmstat here, and of splitting such a table in Python."""
    fd = os.open("/proc/vmstat", os.O_RDONLY)
    table = b"".join(b"nr_counter_%d %d\n" % (n, n * n) for n in range(LINES))
    try:
        return {
            "read_us": _cpu_us(lambda: os.pread(fd, 65536, 0), READS),
            "python_us": _cpu_us(lambda: [line.split() for line in table.split(b"\n")], LOOPS),
        }
    finally:
        os.close(fd)


def _cpu_us(once: Callable[[], object], times: int) -> float:
    before = resource.getrusage(resource.RUSAGE_SELF)
    for _ in range(times):
        once()
    after = resource.getrusage(resource.RUSAGE_SELF)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return 1e6 * spent / times
