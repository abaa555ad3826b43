# SPDX-License-Identifier: GPL-2.0-or-later
"""A campaign on hosts that are reached by ssh: real sshd's on loopback, whose VMs are played.

What ends badly here (a driver, a worker, a host) is ended so.
"""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from run.run_folders import completed
from tests.support import loopback_hosts
from tests.support.loopback_hosts import LoopbackHost
from tests.support.vms import wait_for

SUITE = Path(__file__).resolve().parents[2]
LABELS = ("6.12", "7.2")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(900),
    pytest.mark.skipif(not Path(loopback_hosts.SSHD).exists(), reason="needs openssh-server"),
]


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[LoopbackHost]]:
    folder = tmp_path_factory.mktemp("ssh") / "hosts"
    with loopback_hosts.hosts(folder, "alpha", "beta", "gamma") as found:
        yield found


class Campaign:
    """A campaign of two kernels on such hosts, each command a process."""

    def __init__(self, folder: Path, hosts: list[LoopbackHost]) -> None:
        self.hosts = hosts
        self.folder = folder / "c"
        self.log = folder / "ran"
        self.drivers: list[subprocess.Popen[str]] = []
        self._env = {
            **os.environ,
            "XDG_CACHE_HOME": str(folder / "cache"),
            "DESKTOP_FREEZE_SSH": f"ssh -F {hosts[0].folder.parent / 'ssh_config'}",
            "DESKTOP_FREEZE_LOCKS": str(folder),
            "PLAYED_LOST_S": "4",
        }
        for one in hosts:
            one.play(log=str(self.log))

    def play(self, **settings: Any) -> None:
        """What the VMs of all hosts do."""
        for one in self.hosts:
            one.play(log=str(self.log), **settings)

    def begin(self, runs: int, where: str = "") -> "subprocess.Popen[str]":
        """Start a command; where: "" is where the campaign was before."""
        command = [sys.executable, "-m", "tests.support.played_campaign"]
        process = subprocess.Popen(
            [*command, str(self.folder), where, str(runs)],
            cwd=SUITE,
            env=self._env,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.drivers.append(process)
        return process

    def go(self, runs: int, where: str = "") -> str:
        """Do it to its end: what it said."""
        process = self.begin(runs, where)
        try:
            said, _ = process.communicate(timeout=600)
        finally:
            process.kill()
        assert process.returncode == 0, said
        return said

    def ran(self) -> list[str]:
        """The runs that hosts have done to their end."""
        return sorted(self.log.read_text().splitlines()) if self.log.exists() else []

    def kept(self) -> dict[str, Any]:
        """Its hosts.json."""
        found: dict[str, Any] = json.loads((self.folder / "hosts.json").read_text())
        return found

    def check(self, runs: int) -> None:
        """Nothing is lost, nothing is left, and nothing is there twice."""
        wanted = set(range(1, runs + 1))
        for label in LABELS:
            assert completed(self.folder / label) == wanted
            assert not list((self.folder / label).glob("*partial*"))
            assert not list((self.folder / label).glob(".*"))
            assert not list((self.folder / label).glob("*differs*"))
        assert self.kept()["runs"].keys() == {f"{one}/{n}" for one in LABELS for n in wanted}
        plan = tomllib.loads((self.folder / "plan.toml").read_text())
        entered = [(one["variant"], one["number"]) for one in plan["run"] if "cut" not in one]
        assert sorted(entered) == sorted((one, n) for one in LABELS for n in wanted)
        for one in self.hosts:
            assert one.workers() == [] and one.campaigns() == [], one.name

    def workers(self) -> list[int]:
        """All processes that do runs."""
        return [pid for one in self.hosts for pid in one.workers()]


@pytest.fixture
def campaign(tmp_path: Path, three: list[LoopbackHost]) -> Iterator[Campaign]:
    found = Campaign(tmp_path, three)
    yield found
    for driver in found.drivers:
        driver.kill()
        driver.wait()
    for pid in found.workers():
        os.kill(pid, signal.SIGKILL)


ALL = "ssh:alpha=2,beta,gamma"


def test_a_host_that_makes_another_run_is_left_out(campaign: Campaign) -> None:
    campaign.hosts[2].play(log=str(campaign.log), bytes="others", qemu="10.0")
    said = campaign.go(3, ALL)
    campaign.check(3)
    why = "gamma: left out: its proof is another run: latency-gitk-1.log"
    assert why in said and "machine.qemu 10.0 here, 7.2 on alpha" in said
    assert "alpha: 2 at a time" in said and "beta: 1 at a time" in said
    assert set(campaign.kept()["runs"].values()) == {"alpha", "beta"}
    # Each file once for a host, by its digest.
    kept = {path.name for path in (campaign.hosts[0].cache / "by-digest").iterdir()}
    assert len(kept) > 5 and not [name for name in kept if name.endswith(".part")]


def test_the_driver_may_be_killed_and_nothing_is_done_twice(campaign: Campaign) -> None:
    campaign.play(seconds=8)
    driver = campaign.begin(3, ALL)
    assert wait_for(lambda: len(campaign.workers()) >= 4 and len(campaign.ran()) >= 1, 300)
    driver.kill()
    driver.communicate()
    assert campaign.workers(), "the hosts go on"
    campaign.play(seconds=0.2)
    said = campaign.go(3)
    assert said.count("has it already") >= 3, said
    campaign.check(3)
    assert campaign.ran() == sorted(f"{label} {n}" for label in LABELS for n in (1, 2, 3))


def test_a_killed_worker_and_an_interrupted_driver(campaign: Campaign) -> None:
    campaign.play(seconds=600)
    driver = campaign.begin(2, ALL)
    assert wait_for(lambda: len(campaign.workers()) >= 4, 600)
    os.kill(campaign.hosts[1].workers()[0], signal.SIGKILL)
    cut = "*/*.cut-1/status.json"
    assert wait_for(lambda: any(campaign.folder.glob(cut)), 120)
    assert "its worker was cut short" in next(campaign.folder.glob(cut)).read_text()
    driver.send_signal(signal.SIGINT)
    said, _ = driver.communicate(timeout=200)
    assert "interrupted; 4 of 4 runs are missing" in said, said
    assert campaign.workers() == [] and not any(one.campaigns() for one in campaign.hosts)
    campaign.play(seconds=0.2)
    campaign.go(2)
    campaign.check(2)


def test_a_host_that_cuts_runs_short_gets_no_more_and_another_does_them(
    campaign: Campaign,
) -> None:
    campaign.hosts[1].play(state="aborted")
    said = campaign.go(3, "ssh:beta=2,alpha=1")
    assert "left: nothing" in said, said
    campaign.check(3)
    assert set(campaign.kept()["runs"].values()) == {"alpha"}


def test_what_a_silent_host_had_is_done_elsewhere_and_its_copy_is_compared(
    campaign: Campaign,
) -> None:
    """The other host's copy lasts until the silent one is back with its own."""
    alpha, beta, _ = campaign.hosts
    alpha.play(log=str(campaign.log), seconds=40)
    beta.play(log=str(campaign.log), seconds=3)
    driver = campaign.begin(1, "ssh:alpha=2,beta=1")
    assert wait_for((campaign.folder / "hosts.json").exists, 300)
    assert wait_for(lambda: bool(campaign.kept()["proved"]), 300)
    assert wait_for(lambda: bool(beta.workers() and alpha.workers()), 300)
    beta.end()
    assert wait_for(lambda: bool(list(campaign.folder.glob("*/1.cut-1"))), 120)
    beta.begin()
    said, _ = driver.communicate(timeout=400)
    assert driver.returncode == 0, said
    assert "beta does not answer" in said and "beta answers again" in said, said
    assert "a second copy, from alpha: the same bytes" in said, said
    campaign.check(1)


def test_hosts_that_cannot_do_runs_are_named(campaign: Campaign) -> None:
    campaign.hosts[0].end()
    with contextlib.ExitStack() as back:
        back.callback(campaign.hosts[0].begin)
        process = campaign.begin(1, "ssh:alpha")
        said, _ = process.communicate(timeout=200)
    assert process.returncode != 0
    assert "alpha: left out: it does not answer: " in said
    assert "no host of --on can do runs" in said
    shutil.rmtree(campaign.folder)
