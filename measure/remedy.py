# SPDX-License-Identifier: GPL-2.0-or-later
"""Adds a variant's remedy to a run: a daemon beside the workload, a control group around it.

A remedy's swap and knobs are those of its variant. The daemon runs with its distribution's
settings; its log is kept in memory, and the log's last lines go to meta.json.
"""

import contextlib
import os
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from contract import values
from contract.variant import Variant
from errors import UserError
from monitors.streams import AnyProgram
from setup import meminfo
from setup.crypt_lvm import mapper
from workloads import load_output, memcg
from workloads.companions import DIES_WITH_US

LOG = mapper.RUN / "daemon.log"
SLICE = "desktop-freeze-slice"
STARTED_S = 1.0  # a daemon that cannot run has ended by then
GRACE_S = 10.0
MOST_LINES, MOST_LENGTH = 40, 300  # lines and characters a line of the log in meta.json
MEMINFO = Path("/proc/meminfo")


def group() -> memcg.Memcg:
    """The control group of the workload's programs, which exists within `around`.

    UserError if the machine's memory controller is of version 1.
    """
    root, old = memcg.hierarchy(2)
    if old:
        reason = "a remedy's control group is of version 2, and this machine's are of version 1"
        raise UserError(reason, hint="boot with systemd.unified_cgroup_hierarchy=1")
    return memcg.Memcg(root / SLICE, old=False)


def inside(programs: Sequence[AnyProgram], variant: Variant) -> list[AnyProgram]:
    """The programs, each changed to join the variant's control group first.

    Or a group of its own inside it, as each program of a desktop has its scope.
    """
    if values.SCOPE_PER_PROGRAM in variant.slice:
        return [_in_scope(program) for program in programs]
    joining = list(group().joining())
    return [replace(program, argv=[*joining, *program.argv]) for program in programs]


def _in_scope(program: AnyProgram) -> AnyProgram:
    scope = memcg.Memcg(group().folder / f"{program.name}.scope", old=False)
    scope.folder.mkdir()
    return replace(
        program,
        argv=[*scope.joining(), *program.argv],
        env=program.env | {load_output.SCOPE: str(scope.folder)},
    )


@contextlib.contextmanager
def around(variant: Variant) -> Iterator[dict[str, Any]]:
    """Run the variant's daemon and set its control group up; yields the facts for meta.json.

    `name`, `daemon`, `slice` (as the kernel reads it back), `managed` (the groups that were sent to
    systemd-oomd), and on leaving `daemon_alive` and `log`, the daemon's last lines. UserError if
    the daemon is missing or ends at once, or if the group cannot be made.
    """
    facts: dict[str, Any] = {"name": variant.remedy}
    files = dict(variant.slice)
    properties = {name: files.pop(name) for name in [*files] if name.startswith(values.MANAGED_OOM)}
    send_groups = None
    with contextlib.ExitStack() as stack:
        if files:
            settings = {file: absolute(value) for file, value in files.items()}
            stack.enter_context(memcg.settled(group(), settings))
            facts["slice"] = _read_back(settings)
        if properties:
            from measure import managed_oom  # only such a run spends memory on it

            send_groups = stack.enter_context(managed_oom.subscription(properties, SLICE))
        if variant.daemon:
            stack.enter_context(_daemon(variant.daemon, facts))
        if send_groups:
            facts["managed"] = send_groups()
        yield facts


def absolute(value: str) -> str:
    """The bytes for a value in percent of the memory; any other value unchanged."""
    if not value.endswith("%"):
        return value
    memory = meminfo.in_bytes(file=MEMINFO)
    assert memory is not None
    return str(memory * int(value[:-1]) // 100)


def _read_back(settings: Mapping[str, str]) -> dict[str, str]:
    return {file: (group().folder / file).read_text().strip() for file in settings}


@contextlib.contextmanager
def _daemon(command: str, facts: dict[str, Any]) -> Iterator[None]:
    argv = command.split()
    if not shutil.which(argv[0]):
        raise UserError(f"{argv[0]} is not installed on this machine", hint="install its package")
    facts["daemon"] = command
    LOG.parent.mkdir(parents=True, exist_ok=True)
    with open(LOG, "wb") as log:
        daemon = subprocess.Popen(
            [*DIES_WITH_US, *argv],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            cwd="/",
            env={**os.environ, "SYSTEMD_LOG_TARGET": "console"},  # the guest has no journal
        )
    try:
        time.sleep(STARTED_S)
        if daemon.poll() is not None:
            reason = (_last_lines() or ["it printed nothing"])[-1]
            raise UserError(f"{argv[0]} ended with status {daemon.returncode}: {reason}")
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
