# SPDX-License-Identifier: GPL-2.0-or-later
"""A campaign in Slurm's queue: a real one on loopback, two nodes, whose VMs are played.

What ends badly here (a driver, a node, the controller, a job) is ended so.
"""

import json
import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support import loopback_slurm
from tests.support.fleet_campaign import LABELS, WAIT_S, FleetCampaign
from tests.support.loopback_hosts import SITE
from tests.support.loopback_slurm import LoopbackSlurm
from tests.support.played_session import PLAYED
from tests.support.vms import wait_for

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3 * WAIT_S)]
ALL_ONCE = sorted(f"{label} {n}" for label in LABELS for n in (1, 2, 3))
SLURM = "slurm:slots=4,mem=200,time=60"


@pytest.fixture(scope="module")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LoopbackSlurm]:
    folder = tmp_path_factory.mktemp("slurm") / "cluster"
    with loopback_slurm.cluster(folder, "n1", "n2", max_array=3) as found:
        yield found
    assert found.processes() == []


class Campaign(FleetCampaign):
    """One on this cluster."""

    def __init__(self, folder: Path, slurm: LoopbackSlurm) -> None:
        self.slurm = slurm
        self._played = folder / "played.json"
        self.scratch = folder / "tmp"
        self.scratch.mkdir()
        (folder / "site").mkdir()
        (folder / "site" / "sitecustomize.py").write_text(SITE)
        settings = {
            "PYTHONPATH": str(folder / "site"),
            PLAYED: str(self._played),
            "TMPDIR": str(self.scratch),
        }
        super().__init__(folder, {**slurm.environment, **settings})
        self.play()

    def play(self, **settings: Any) -> None:
        """What the VMs of all nodes do from now on."""
        aside = self._played.with_suffix(".new")
        aside.write_text(json.dumps({"log": str(self.log), **settings}))
        aside.rename(self._played)

    def check(self, runs: int) -> None:
        """Nothing is left in the queue or on a node, too."""
        super().check(runs)
        assert [path.name for path in (self.folder / ".slurm").iterdir()] == ["proofs"]
        assert wait_for(lambda: not self.queue(), WAIT_S)  # a task that is over completes there
        assert wait_for(lambda: not self.workers(), WAIT_S)
        assert not list(self.scratch.glob("desktop-freeze-slurm*"))

    def queue(self) -> list[str]:
        """The tasks that wait or run, as "id node"."""
        return self.slurm.call("squeue", "-h", "--array", "-o", "%i %N").splitlines()

    def going(self) -> int:
        """How many runs grow on nodes."""
        return len(list(self.folder.glob("*/*.partial-*/meta.json")))

    def crash(self, node: str) -> None:
        """End all that runs on a node, and have the controller know that it is down.

        By itself it would after SlurmdTimeout, which a busy machine exceeds without a crash.
        """
        self.slurm.kill(node)
        for worker in self.workers(node):
            status = Path("/proc", str(worker), "status").read_text()
            (parent,) = re.findall(r"^PPid:\s*(\d+)", status, re.MULTILINE)
            for pid in (int(parent), worker):
                os.kill(pid, signal.SIGKILL)
        self.slurm.call("scontrol", "update", f"NodeName={node}", "State=DOWN", "Reason=crash")

    def workers(self, node: str = "") -> list[int]:
        """The processes that do runs, on one node or on all."""
        return [pid for pid in self.slurm.processes() if _is_worker(pid, node)]


def _is_worker(pid: int, node: str) -> bool:
    try:
        words = Path("/proc", str(pid), "cmdline").read_bytes().split(b"\0")
        settings = Path("/proc", str(pid), "environ").read_bytes().split(b"\0")
    except OSError:
        return False
    return b"run.slurm.on_node" in words and (
        not node or f"SLURMD_NODENAME={node}".encode() in settings
    )


@pytest.fixture
def campaign(tmp_path: Path, slurm: LoopbackSlurm) -> Iterator[Campaign]:
    found = Campaign(tmp_path, slurm)
    yield found
    for driver in found.drivers:
        driver.kill()
        driver.wait()
    slurm.call("scancel", "--name", f"desktop-freeze-{found.kept()['campaign']}")
    for pid in found.workers():
        os.kill(pid, signal.SIGKILL)


def test_both_nodes_do_it_and_the_driver_may_be_killed(campaign: Campaign) -> None:
    """One run is done then, four go on, in arrays of at most three, and one was not begun."""
    campaign.play(held=True, free=["6.12 1"])
    driver = campaign.begin(3, SLURM)
    campaign.wait(lambda: campaign.going() == 4 and campaign.ran() == ["6.12 1"])
    assert campaign.workers("n1") and campaign.workers("n2")
    driver.kill()
    driver.wait()
    driver = campaign.begin(3)
    campaign.wait(lambda: campaign.said().count("Slurm has it already") >= 3)
    campaign.play()
    campaign.end(driver)
    campaign.check(3)
    assert campaign.ran() == ALL_ONCE
    assert set(campaign.kept()["runs"].values()) == {"n1", "n2"}


def test_a_node_that_makes_another_run_is_left_out(campaign: Campaign) -> None:
    campaign.go(1, SLURM + ",nodelist=n1")
    campaign.play(nodes={"n2": {"bytes": "others", "qemu": "10.0"}})
    said = campaign.go(3, SLURM)
    assert "n2 is left out: its proof differs in latency-gitk-1.log" in said, said
    assert "machine.qemu 10.0 here, 7.2 on n1" in said
    campaign.check(3)
    assert set(campaign.kept()["runs"].values()) == {"n1"}


def test_what_somebody_cancels_or_kills_is_repeated(campaign: Campaign) -> None:
    """scancel, SIGKILL of a worker, and a node that is gone with all that it did."""
    slurm = campaign.slurm
    campaign.play(held=True)
    driver = campaign.begin(3, SLURM)
    campaign.wait(lambda: campaign.going() == 4)
    slurm.call("scancel", campaign.queue()[0].split()[0])
    campaign.wait(lambda: _cut(campaign, "cancelled in Slurm (scancel)") == 1)
    campaign.wait(lambda: campaign.going() == 4)
    os.kill(campaign.workers("n1")[0], signal.SIGKILL)
    campaign.wait(lambda: _cut(campaign, "its worker was cut short") == 1)
    campaign.wait(lambda: campaign.going() == 4)
    campaign.crash("n2")
    campaign.wait(lambda: _cut(campaign, "its node failed") == 2)
    slurm.begin("n2")
    campaign.play()
    said = campaign.end(driver)
    assert "left: nothing" in said, said
    campaign.check(3)
    assert campaign.ran() == ALL_ONCE


def _cut(campaign: Campaign, why: str) -> int:
    """How many runs were cut short for that reason."""
    found = campaign.folder.glob("*/*.cut-*/status.json")
    return sum(why in path.read_text() for path in found)


def test_the_controller_may_be_away_and_a_node_drained(campaign: Campaign) -> None:
    slurm = campaign.slurm
    campaign.play(held=True)
    driver = campaign.begin(3, SLURM)
    campaign.wait(lambda: campaign.going() == 4)
    slurm.call("scontrol", "update", "NodeName=n2", "State=DRAIN", "Reason=test")
    # In order: one that is killed may have forgotten the jobs that it began last.
    slurm.kill("slurmctld", signal.SIGTERM)
    campaign.wait(lambda: "Slurm's controller does not answer" in campaign.said())
    campaign.play()
    campaign.wait(lambda: len(campaign.ran()) == 4)
    slurm.begin("slurmctld")
    said = campaign.end(driver)
    slurm.call("scontrol", "update", "NodeName=n2", "State=RESUME")
    assert "Slurm's controller answers again" in said, said
    campaign.check(3)
    assert campaign.ran() == ALL_ONCE and not list(campaign.folder.glob("*/*.cut-*"))


def test_ctrl_c_leaves_nothing_in_the_queue(campaign: Campaign) -> None:
    campaign.play(held=True)
    driver = campaign.begin(3, SLURM)
    campaign.wait(lambda: campaign.going() == 4)
    driver.send_signal(signal.SIGINT)
    said = campaign.end(driver)
    assert "interrupted; 6 of 6 runs are missing" in said, said
    assert wait_for(lambda: not campaign.queue() and not campaign.workers(), WAIT_S)
    campaign.play()
    campaign.go(3)
    campaign.check(3)


def test_a_run_that_reaches_slurms_time_limit_says_so(campaign: Campaign) -> None:
    campaign.play(held=True)
    driver = campaign.begin(1, "slurm:slots=2,mem=200,time=1")
    campaign.wait(lambda: _cut(campaign, "it reached Slurm's time limit: --on slurm:time=") >= 2)
    driver.send_signal(signal.SIGINT)
    campaign.end(driver)
    campaign.play()
    said = campaign.go(1, SLURM)
    assert "left: nothing" in said, said
    campaign.check(1)
