# SPDX-License-Identifier: GPL-2.0-or-later
"""TEST HELPER: records tests/golden/keys/known-delays.log again, on this machine.

usage: python3 -m tests.capture_keys FOLDER, which then has it as latency-keys.log

The shell is stopped for 3 s when its first key is due, the editor killed after its third, and the
pager stopped before its second turn, in which its keys are not shown.
"""

import os
import signal
import sys
import time
from pathlib import Path

from measure import key_programs
from monitors.launch import KeysProcess
from setup.observers import program
from tests.support.key_observers import children

STEP_S, GAP_S = 5.0, 0.5


def main(folder: Path) -> None:
    """Write latency-keys.log into the folder."""
    keys = KeysProcess(
        program(), folder, key_programs.in_terminals(), step_s=STEP_S, gap_s=GAP_S, priority=0
    )
    assert keys.prepare() == []
    pids = children(keys.pid)
    begin = time.monotonic() + 0.5
    keys.start(begin)

    def send(at: float, name: str, number: signal.Signals) -> None:
        time.sleep(max(0.0, begin + at - time.monotonic()))
        os.kill(pids[name], number)

    send(STEP_S - 0.1, "bash", signal.SIGSTOP)
    send(STEP_S + 3.0, "bash", signal.SIGCONT)
    send(2.5 * STEP_S, "busybox", signal.SIGKILL)
    send(5.5 * STEP_S, "more", signal.SIGSTOP)
    time.sleep(max(0.0, begin + 6.5 * STEP_S - time.monotonic()))
    keys.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
