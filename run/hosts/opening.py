# SPDX-License-Identifier: GPL-2.0-or-later
"""Opens the workers of a campaign: this machine, or the hosts of --on after their proof."""

import contextlib
import shutil
import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from contract.options import Options
from errors import UserError
from run import checks, clock
from run.hosts import host_list, kept, proof, sending, ssh
from run.hosts.kept import Kept, RunHosts
from run.hosts.one_host import LeftOut, OneHost
from run.hosts.ssh import Failed
from run.hosts.ssh_workers import SshWorkers
from run.jobs.elsewhere import Blocks
from run.jobs.job import Job
from run.jobs.local import Local
from run.jobs.programs import NoAnswer
from run.jobs.workers import Workers
from run.preparation import PreparedVariant, say
from run.slurm import opening as slurm_opening
from run.slurm import options as slurm
from vm.qemu import GUEST, HOST

SLOW_S = 5.0  # a slower answer to a command is reported: each run needs several commands


def chosen(argv: Sequence[str], folder: Path) -> str:
    """The value of --on, else the last one of the campaign in the folder, else this machine."""
    before = kept.read(folder)
    return host_list.asked(argv) or (before.on if before else host_list.LOCAL)


def check(where: str, options: Options, clocks: Collection[str], *, bisects: bool = False) -> None:
    """UserError if this machine has no room for the runs, or other hosts cannot do them.

    clocks: the guests' clocks. bisects: whether the runs belong to a bisect.
    """
    if where == host_list.LOCAL:
        checks.check_rooms(options, clock.parallel_jobs(options, clocks))
        return
    needed = slurm_opening.PROGRAMS if slurm.is_slurm(where) else ssh.PROGRAMS
    if missing := [program for program in needed if shutil.which(program) is None]:
        raise UserError(
            f"--on {where.partition(':')[0]} needs {', '.join(missing)} here", hint="install it"
        )
    if bisects and set(clocks) != {GUEST}:
        raise UserError(
            "--bisect with --on needs the guest's clock: on the host's, hosts differ in speed",
            hint="leave out --on, or what asks for that clock",
        )


@contextlib.contextmanager
def workers(
    where: str,
    folder: Path,
    options: Options,
    ready: list[PreparedVariant],
    stopped: Callable[[], bool],
    *,
    missing: bool = True,
) -> Iterator[Workers]:
    """The workers for the runs of a campaign or bisect in the folder; valid within the context.

    missing: False if no run is missing: then no host is needed. UserError if no host can do runs.
    """
    before = kept.read(folder)
    if where != host_list.LOCAL and not missing:
        if before is not None:
            _leave(before, [])
        yield Local(1)
        return
    if where == host_list.LOCAL:
        if before is not None and before.on != where:
            _leave(before, [])
            before.on = where
            before.write(folder)
        yield Local(clock.parallel_jobs(options, (one.guest.timing.clock for one in ready)))
        return
    now = before or Kept(where)
    listed = host_list.hosts(where)
    if not (slurm.is_slurm(where) and slurm.is_slurm(now.on)):
        _leave(now, [one.name for one in listed])
    now.on = where
    now.write(folder)
    job = proof.job_of(options, ready[0].variant, ready[0].guest)
    runs = RunHosts(now, folder)
    blocks = Blocks(len(ready), now.runs) if job.guest.timing.clock == HOST else None
    if slurm.is_slurm(where):
        try:
            with slurm_opening.workers(where, now, folder, job, runs.note, blocks) as in_slurm:
                yield in_slurm
        finally:
            runs.keep()
        return
    if blocks and any(one.slots > 1 for one in listed):
        say("one run at a time on each host: on the host's clock two would measure each other")
        listed = [replace(one, slots=1) for one in listed]
    opened = [OneHost(one, now.campaign) for one in listed]
    ending = threading.Event()
    try:
        hosts = _proved(now, folder, opened, job, lambda: ending.is_set() or stopped())
        known = {one.name: [job["job"] for job in one.call("look")["jobs"]] for one in hosts}
        remote = SshWorkers(hosts, known, folder, runs.note, blocks)
        try:
            yield remote
        finally:
            remote.close()
    except (Failed, NoAnswer) as error:
        raise UserError(f"a host failed while it was made ready: {error}") from None
    finally:
        ending.set()
        runs.keep()
        with ThreadPoolExecutor(len(opened)) as pool:
            for text in filter(None, pool.map(_left, opened)):
                say(text)


def _proved(
    now: Kept, folder: Path, opened: list[OneHost], job: Job, stopped: Callable[[], bool]
) -> list[OneHost]:
    """The hosts whose proof is the same as all others'; UserError if there are none."""
    say(f"making {len(opened)} host{'s' * (len(opened) > 1)} ready:")
    with ThreadPoolExecutor(len(opened)) as pool:
        why = dict(
            zip((candidate.name for candidate in opened), pool.map(_open, opened), strict=True)
        )
    suite, _ = sending.suite()
    left = [candidate for candidate in opened if not why[candidate.name]]
    fresh = [
        candidate for candidate in left if not now.proof or now.proved.get(candidate.name) != suite
    ]
    refused, now.proof = (
        proof.left_out(fresh, job, now.proof, stopped) if fresh else ({}, now.proof)
    )
    if stopped():
        raise KeyboardInterrupt
    why |= refused
    for host in opened:
        reason = why[host.name]
        say(f"  {host.name}: " + (f"left out: {reason}" if reason else f"{host.slots} at a time"))
        now.proved.pop(host.name, None)
        if not reason:
            now.proved[host.name] = suite
    now.write(folder)
    good = [candidate for candidate in opened if not why[candidate.name]]
    if not good:
        raise UserError("no host of --on can do runs", hint="see the reasons above; fix one")
    return good


def _open(host: OneHost) -> str:
    """Open the host; returns why it cannot be used, or "" if it can."""
    try:
        host.open()
    except LeftOut as error:
        return str(error)
    except NoAnswer as error:
        return f"it does not answer: {error}"
    if host.answered_s > SLOW_S:
        say(
            f"{host.name} took {host.answered_s:.0f} s to answer, and each query waits: see its "
            "~/.bashrc and the network"
        )
    return ""


def _left(host: OneHost) -> str:
    """Leave the host; returns a message if jobs may still run there, else ""."""
    try:
        host.leave()
    except NoAnswer:
        return f"{host.name} does not answer: what it does goes on there to its end"
    return ""


def _leave(before: Kept, named: list[str]) -> None:
    """End the campaign's jobs on hosts that --on no longer names."""
    if slurm.is_slurm(before.on):
        slurm_opening.leave(before)
        return
    try:
        listed = host_list.hosts(before.on)
    except (OSError, ValueError):
        return  # its file of hosts is gone
    for entry in listed:
        if entry.name not in named:
            host = OneHost(entry, before.campaign)
            try:
                host.open()
                host.leave()
            except (LeftOut, NoAnswer) as error:
                say(f"{entry.name}, which had runs before, is not asked for them: {error}")
