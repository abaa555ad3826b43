# SPDX-License-Identifier: GPL-2.0-or-later
"""The time by which QEMU sizes its TLB counts flushes; all other threads have the host's."""

import subprocess
import time
from pathlib import Path

from tests.support.library_drivers import compiled


def test_only_the_cpus_thread_has_a_time_of_its_flushes(tmp_path: Path) -> None:
    program = compiled(tmp_path, "tlb_driver", "tlb")
    before = time.time_ns() // 1000
    done = subprocess.run(program, capture_output=True, text=True, check=True)
    first, second, *flushes = map(int, done.stdout.split())
    assert before <= first <= second <= time.time_ns() // 1000
    # Later than any time of the host, so that QEMU's first window has ended.
    assert flushes == [4 * 10**15 + 100 * n for n in (1, 2, 3)]
