# SPDX-License-Identifier: GPL-2.0-or-later
"""What a variant's remedy adds to a run: a daemon beside the workload, a control group around it.

Swap and knobs of a remedy are those of its variant. The daemon has its distribution's settings; its
log is in memory, and what it said at the end of it goes to meta.json.
"""

import contextlib
import os
import re
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from contract.variant import Variant
from errors import UserError
from monitors.streams import AnyProgram
from setup.crypt_lvm import mapper
from workloads import memcg

LOG = mapper.RUN / "daemon.log"
SLICE = "desktop-freeze-slice"
STARTED_S = 1.0  # a daemon that will not do has ended by then
GRACE_S = 10.0
MOST_LINES, MOST_LENGTH = 40, 300  # of the log, in meta.json
MEMINFO = Path("/proc/meminfo")
DIES_WITH_US = ("setpriv", "--pdeathsig", "KILL")


def group() -> memcg.Memcg:
    """The control group of the workload's programs, which is there within `around`."""
    return memcg.Memcg(memcg.hierarchy(2)[0] / SLICE, old=False)


def inside(programs: Sequence[AnyProgram]) -> list[AnyProgram]:
    """The programs, executed in the variant's control group."""
    joining = list(group().joining())
    return [replace(one, argv=[*joining, *one.argv]) for one in programs]


@contextlib.contextmanager
def around(variant: Variant) -> Iterator[dict[str, Any]]:
    """The variant's daemon and control group; yields what meta.json says, whole after it.

    `name`, `daemon`, `slice` (as the kernel has it), and after it `log`, the daemon's last lines.
    UserError if the daemon is not there or ends at once, or the group cannot be had.
    """
    facts: dict[str, Any] = {"name": variant.remedy}
    with contextlib.ExitStack() as stack:
        if variant.slice:
            settings = {file: absolute(value) for file, value in variant.slice}
            stack.enter_context(memcg.settled(group(), settings))
            facts["slice"] = _as_it_is(settings)
        if variant.daemon:
            stack.enter_context(_daemon(variant.daemon, facts))
        yield facts


def absolute(value: str) -> str:
    """A share of the memory in bytes; any other value as it is."""
    if not value.endswith("%"):
        return value
    total = re.search(r"MemTotal:\s+(\d+) kB", MEMINFO.read_text())
    assert total
    return str((int(total[1]) << 10) * int(value[:-1]) // 100)


def _as_it_is(settings: Mapping[str, str]) -> dict[str, str]:
    return {file: (group().folder / file).read_text().strip() for file in settings}


@contextlib.contextmanager
def _daemon(command: str, facts: dict[str, Any]) -> Iterator[None]:
    argv = command.split()
    if not shutil.which(argv[0]):
        raise UserError(f"{argv[0]}: not on this machine", hint="install its package")
    facts["daemon"] = command
    LOG.parent.mkdir(parents=True, exist_ok=True)
    with open(LOG, "wb") as log:
        daemon = subprocess.Popen(
            [*DIES_WITH_US, *argv],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            cwd="/",
        )
    try:
        time.sleep(STARTED_S)
        if daemon.poll() is not None:
            said = (_last_lines() or ["it said nothing"])[-1]
            raise UserError(f"{argv[0]} ended with status {daemon.returncode}: {said}")
        yield
    finally:
        facts["daemon_alive"] = daemon.poll() is None
        daemon.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            daemon.wait(GRACE_S)
        daemon.kill()
        daemon.wait()
        facts["log"] = _last_lines()


def _last_lines() -> list[str]:
    with open(LOG, "rb") as log:
        log.seek(max(0, log.seek(0, os.SEEK_END) - MOST_LINES * MOST_LENGTH))
        text = log.read().decode("utf-8", "replace")
    return [line[:MOST_LENGTH] for line in text.splitlines() if line.strip()][-MOST_LINES:]
