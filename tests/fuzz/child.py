# SPDX-License-Identifier: GPL-2.0-or-later
"""One command in a child process that may not take more than a reader is promised."""

import importlib
import os
import resource
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from errors import Exit, run_command

MEMORY = 1 << 30  # bytes, beyond what the process had before
CPU_S = 30
WALL_S = 900.0  # for a machine that is busy with other things; no pass depends on it
STATUSES = {int(one) for one in (Exit.OK, Exit.USAGE, Exit.MISSING, Exit.FAILED_ON)}


@dataclass(frozen=True)
class Ended:
    """How a command ended; `fault` is empty if that is how a command may end."""

    status: int
    cpu_s: float
    errors: str

    @property
    def fault(self) -> str:
        """What a reader must never do, in a few words."""
        if "Traceback (most recent call last)" in self.errors:
            return f"traceback: {self.errors.strip().splitlines()[-1][:200]}"
        if self.status < 0:
            return f"killed by signal {-self.status} after {self.cpu_s:.1f} s of CPU time"
        if self.status not in STATUSES:
            return f"status {self.status}"
        if self.status and len(self.errors.strip().splitlines()) != 1:
            return f"status {self.status} with {len(self.errors.splitlines())} lines of error"
        return ""


def run(module: str, argv: Sequence[str], log: Path) -> Ended:
    """`python3 -m module argv` in a child of this process, which has imported all it needs."""
    command = importlib.import_module(module)
    child = os.fork()
    if child == 0:
        _become(module, command.main, argv, log)
    until = time.monotonic() + WALL_S
    while True:
        pid, status, used = os.wait4(child, os.WNOHANG)
        if pid:
            break
        if time.monotonic() > until:
            os.kill(child, signal.SIGKILL)
        time.sleep(0.002)
    errors = log.with_suffix(".err").read_text(errors="replace")
    return Ended(os.waitstatus_to_exitcode(status), used.ru_utime + used.ru_stime, errors)


def _become(module: str, main: object, argv: Sequence[str], log: Path) -> None:
    status = 1
    try:
        for number, name in ((1, ".out"), (2, ".err")):
            file = os.open(log.with_suffix(name), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            os.dup2(file, number)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        sys.stdout, sys.stderr = os.fdopen(1, "w"), os.fdopen(2, "w")
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        room = pages * resource.getpagesize() + MEMORY
        resource.setrlimit(resource.RLIMIT_AS, (room, room))
        resource.setrlimit(resource.RLIMIT_CPU, (CPU_S, CPU_S + 2))
        # A killed child cannot remove the bundle that it unpacked: the case's folder holds it.
        tempfile.tempdir = str(log.parent)
        sys.argv = [module, *argv]
        assert callable(main)
        status = run_command(module.removesuffix(".__main__"), main)
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else 1
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)
