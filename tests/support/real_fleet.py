# SPDX-License-Identifier: GPL-2.0-or-later
"""Campaigns with real VMs on hosts that are this machine, and whether their runs are the same."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from run.jobs import run_copies
from tests.support import loopback_hosts, loopback_slurm
from tests.support.processes import processes

SUITE = Path(__file__).resolve().parents[2]
REPEATED = "once more, since it was cut short"
BEGUN_S = 20.0  # after its begin a VM runs its workload, or soon will
SSH, SLURM = ["--on", "ssh:alpha,beta"], ["--on", "slurm:slots=2"]


def qemus_of(folder: Path, but: str = "") -> list[int]:
    """The QEMUs with this folder, and not `but`, in their words (or in their environment)."""
    pids = []
    for pid, words, environment in processes():
        line = b" ".join(words).decode(errors="replace")
        # It is started by its own dynamic linker, and that one by programs that are not QEMU.
        if "ld-linux" not in line.partition(" ")[0] or "qemu-system" not in line:
            continue
        if but and but in line:
            continue
        if str(folder) in line or any(str(folder).encode() in one for one in environment):
            pids.append(pid)
    return pids


class KillsOneQemu:
    """Kills the VM of one run of a campaign, some seconds after it began; not a host's proof."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._seen: dict[int, float] = {}
        self.killed = 0

    def __call__(self, printed: str) -> None:
        """Look at what runs now; printed: by the campaign so far."""
        if self.killed or "run 1 of" not in printed:
            return
        for pid in qemus_of(self._folder, but="/proof/1/"):
            since = self._seen.setdefault(pid, time.monotonic())
            if time.monotonic() - since > BEGUN_S:
                os.kill(pid, signal.SIGKILL)
                self.killed = pid
                return


def campaign(
    folder: Path,
    arguments: Sequence[str],
    environment: Mapping[str, str],
    *,
    within_s: float,
    meanwhile: Callable[[str], None] = lambda printed: None,
) -> tuple[str, float]:
    """Run ./run_test.sh's command with results in folder/c: what it printed, and its seconds."""
    folder.mkdir(parents=True, exist_ok=True)
    output = folder / "printed"
    began = time.monotonic()
    with open(output, "wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "run.main", *arguments, "--out", str(folder / "c")],
            cwd=SUITE,
            env={**os.environ, **environment},
            stdout=log,
            stderr=log,
        )
    try:
        while process.poll() is None and time.monotonic() - began < within_s:
            meanwhile(output.read_text(errors="replace"))
            time.sleep(1.0)
    finally:
        process.terminate()
        process.wait()
    printed = output.read_text(errors="replace")
    assert process.returncode == 0, printed[-4000:]
    return printed, time.monotonic() - began


def compare_runs(one: Path, other: Path) -> tuple[int, list[str]]:
    """How many files of two campaigns' runs are equal, and which are not (6.12.118/1/psi.tsv)."""
    runs = sorted(one.glob("c/*/[0-9]*/status.json"))
    assert runs
    count, different = 0, []
    for run in (status.parent for status in runs):
        place = run.relative_to(one)
        names = run_copies.same_everywhere(run)
        assert len(names) > 10
        unequal = run_copies.differences(run, other / place)
        different += [f"{place.relative_to('c')}/{name}" for name in unequal]
        count += len(set(names) - set(unequal))
    return count, different


@contextlib.contextmanager
def by_ssh(folder: Path) -> Iterator[Mapping[str, str]]:
    """Two hosts with empty caches: the environment of a command with SSH. Nothing is left there."""
    with loopback_hosts.hosts(folder / "hosts", "alpha", "beta", played=False) as hosts:
        yield {"DESKTOP_FREEZE_SSH": f"ssh -F {folder / 'hosts' / 'ssh_config'}"}
        assert not [one.name for one in hosts if one.workers() or one.campaigns()]


@contextlib.contextmanager
def by_slurm(folder: Path) -> Iterator[Mapping[str, str]]:
    """A Slurm of two nodes: the environment of a command with SLURM. Nothing is left there."""
    (folder / "tmp").mkdir(parents=True)
    with loopback_slurm.cluster(folder / "cluster", "n1", "n2") as slurm:
        yield {**slurm.environment, "TMPDIR": str(folder / "tmp")}
    assert slurm.processes() == [] and not list((folder / "tmp").glob("desktop-freeze-slurm*"))
