# SPDX-License-Identifier: GPL-2.0-or-later
"""How fast a machine does what an observer does: the guest's pace against the host's."""

import os
import resource
from collections.abc import Callable

READS, LOOPS = 4000, 800
LINES = 400  # of a table as /proc/vmstat is one


def paces() -> dict[str, float]:
    """CPU us here of one pread of /proc/vmstat, and of splitting a table like it in Python."""
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
