# SPDX-License-Identifier: GPL-2.0-or-later
"""In a guest: run_test.sh's measuring process, and after a while a live-lock that is made up.

usage: pressure_run.py SECONDS RECORDS [ARGUMENT…]. The gitk's, which began SECONDS before, are
stopped until the run has ended, while the kernel's log gets RECORDS warnings a second.
"""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def gitks() -> list[int]:
    """Pids of the gitk's."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if b"\0fake_gitk\0" in path.read_bytes():
                found.append(int(path.parent.name))
        except OSError:
            continue
    return found


def main() -> int:
    """The measuring process's exit status."""
    seconds, records, *argv = sys.argv[1:]
    command = [sys.executable, "-S", "-m", "measure.one_run", *argv]
    process = subprocess.Popen(command, cwd=ROOT)
    while process.poll() is None and not gitks():
        time.sleep(0.5)
    until = time.monotonic() + float(seconds)
    while process.poll() is None and time.monotonic() < until:
        time.sleep(0.5)
    Path("/proc/sys/kernel/printk_devkmsg").write_text("on\n")
    for pid in gitks():
        os.kill(pid, signal.SIGSTOP)
    if int(records):
        with open("/dev/kmsg", "wb", buffering=0) as log:
            while process.poll() is None:
                log.write(b"<4>pressure_run: a record of a log that fills")
                time.sleep(1 / int(records))
    return process.wait()


if __name__ == "__main__":
    sys.exit(main())
