# SPDX-License-Identifier: GPL-2.0-or-later
"""One small campaign with real VMs on this machine, by ssh and by Slurm: the same bytes."""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from run.jobs import run_copies
from tests.conftest import MEASURED
from tests.support import loopback_hosts, loopback_slurm

SUITE = Path(__file__).resolve().parents[2]
SMALL = ("--kernel", "debian:6.12", "--profile", "quick", "--commits", "1500", "--gitk", "2")
RUNS = 2
WITHIN_S = 3000.0
pytestmark = [
    pytest.mark.slow,
    pytest.mark.vm,
    pytest.mark.own_clock,
    pytest.mark.timeout(2 * WITHIN_S + 600),
]


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, float]:
    """The campaign on this machine, and how long its command took, in seconds."""
    return campaign(tmp_path_factory.mktemp("local"), ["--jobs", "2"], {})


def campaign(folder: Path, more: list[str], environment: dict[str, str]) -> tuple[Path, float]:
    """The folder of the only variant, and the seconds that its command took."""
    command = [sys.executable, "-m", "run.main", *SMALL, "--runs", str(RUNS), *more]
    began = time.monotonic()
    done = subprocess.run(
        [*command, "--out", str(folder / "c")],
        cwd=SUITE,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=WITHIN_S,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    (variant,) = {path.parent.parent for path in folder.glob("c/*/1/status.json")}
    return variant, time.monotonic() - began


def same(
    tmp_path: Path,
    local: tuple[Path, float],
    more: list[str],
    environment: dict[str, str],
    note: Callable[[str, object], None],
) -> None:
    """Both campaigns have the same runs."""
    found, seconds = campaign(tmp_path, more, environment)
    names = run_copies.same_everywhere(local[0] / "1")
    assert len(names) > 10
    for number in range(1, RUNS + 1):
        one, other = (folder / str(number) for folder in (local[0], found))
        assert run_copies.differences(one, other) == []
    note(
        MEASURED,
        f"{RUNS} runs, two at a time: {local[1]:.0f} s here, {seconds:.0f} s with {more[1]}, "
        f"{len(names)} files equal in each",
    )


def test_by_ssh_on_two_hosts_with_caches_of_their_own(
    tmp_path: Path, local: tuple[Path, float], record_property: Callable[[str, object], None]
) -> None:
    with loopback_hosts.hosts(tmp_path / "hosts", "alpha", "beta", played=False) as hosts:
        config = hosts[0].folder.parent / "ssh_config"
        environment = {"DESKTOP_FREEZE_SSH": f"ssh -F {config}"}
        same(tmp_path, local, ["--on", "ssh:alpha,beta"], environment, record_property)
        assert not [one.name for one in hosts if one.workers() or one.campaigns()]


def test_by_slurm_on_two_nodes(
    tmp_path: Path, local: tuple[Path, float], record_property: Callable[[str, object], None]
) -> None:
    (tmp_path / "tmp").mkdir()
    with loopback_slurm.cluster(tmp_path / "cluster", "n1", "n2") as slurm:
        environment = {**slurm.environment, "TMPDIR": str(tmp_path / "tmp")}
        same(tmp_path, local, ["--on", "slurm:slots=2"], environment, record_property)
    assert slurm.processes() == [] and not list((tmp_path / "tmp").glob("desktop-freeze-slurm*"))
