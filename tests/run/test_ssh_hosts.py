# SPDX-License-Identifier: GPL-2.0-or-later
"""A campaign on hosts that are reached by ssh: real sshd's on loopback, whose VMs are played.

What ends badly here (a driver, a worker, a host) is ended so.
"""

import contextlib
import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support import loopback_hosts
from tests.support.fleet_campaign import LABELS, WAIT_S, FleetCampaign
from tests.support.loopback_hosts import LoopbackHost
from tests.support.vms import wait_for

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3 * WAIT_S)]


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[LoopbackHost]]:
    folder = tmp_path_factory.mktemp("ssh") / "hosts"
    with loopback_hosts.hosts(folder, "alpha", "beta", "gamma") as found:
        yield found


# Not the suite's own limits: a machine with much else to do may take longer.
PATIENT = "-o ConnectTimeout=600 -o ServerAliveInterval=600"


class Campaign(FleetCampaign):
    """One on such hosts."""

    def __init__(self, folder: Path, hosts: list[LoopbackHost]) -> None:
        settings = {
            "DESKTOP_FREEZE_SSH": f"ssh -F {hosts[0].folder.parent / 'ssh_config'} {PATIENT}",
            "PLAYED_LOST_S": "4",
        }
        super().__init__(folder, settings)
        self.hosts = hosts
        self.play()

    def play(self, **settings: Any) -> None:
        """What the VMs of all hosts do."""
        for one in self.hosts:
            one.play(log=str(self.log), **settings)

    def check(self, runs: int) -> None:
        """Nothing is left on any host, too."""
        super().check(runs)
        assert self.is_left()

    def is_left(self) -> bool:
        """Whether nothing of a campaign is there once what was killed has ended."""
        assert wait_for(lambda: not self.workers(), WAIT_S)
        return not any(one.campaigns() for one in self.hosts)

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
    why = "gamma: left out: its proof differs in latency-gitk-1.log"
    assert why in said and "machine.qemu 10.0 here, 7.2 on alpha" in said
    assert "alpha: 2 at a time" in said and "beta: 1 at a time" in said
    assert set(campaign.kept()["runs"].values()) == {"alpha", "beta"}
    # Each file once for a host, by its digest.
    kept = {path.name for path in (campaign.hosts[0].cache / "by-digest").iterdir()}
    assert len(kept) > 5 and not [name for name in kept if name.endswith(".part")]


def test_the_driver_may_be_killed_and_nothing_is_done_twice(campaign: Campaign) -> None:
    """One run is done then, four go on, and one was not begun."""
    campaign.play(held=True, free=["6.12 1"])
    driver = campaign.begin(3, ALL)
    # A run that is taken over has no worker any more: these four are of others.
    campaign.wait((campaign.folder / "6.12" / "1" / "status.json").exists)
    campaign.wait(lambda: len(campaign.workers()) == 4)
    assert campaign.ran() == ["6.12 1"]
    driver.kill()
    driver.wait()
    assert len(campaign.workers()) == 4, "the hosts go on"
    driver = campaign.begin(3)
    campaign.wait(lambda: campaign.said().count("has it already") >= 3)
    campaign.play()
    campaign.end(driver)
    campaign.check(3)
    assert campaign.ran() == sorted(f"{label} {n}" for label in LABELS for n in (1, 2, 3))


def test_a_killed_worker_and_an_interrupted_driver(campaign: Campaign) -> None:
    campaign.play(held=True)
    driver = campaign.begin(2, ALL)
    campaign.wait(lambda: len(campaign.workers()) == 4)
    os.kill(campaign.hosts[1].workers()[0], signal.SIGKILL)
    cut = "*/*.cut-1/status.json"
    campaign.wait(lambda: any(campaign.folder.glob(cut)))
    assert "its worker was cut short" in next(campaign.folder.glob(cut)).read_text()
    driver.send_signal(signal.SIGINT)
    said = campaign.end(driver)
    assert "interrupted; 4 of 4 runs are missing" in said, said
    assert campaign.is_left()
    campaign.play()
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
    campaign.play(held=True)
    driver = campaign.begin(1, "ssh:alpha=2,beta=1")
    # Those that work before the hosts have proved themselves do the proof.
    campaign.wait(lambda: "beta: 1 at a time" in campaign.said())
    campaign.wait(lambda: bool(beta.workers() and alpha.workers()))
    beta.end()
    campaign.wait(lambda: bool(list(campaign.folder.glob("*/1.cut-1"))))
    campaign.wait(lambda: len(alpha.workers()) == 2)
    beta.play(log=str(campaign.log))
    campaign.wait(lambda: not beta.workers())
    beta.begin()
    campaign.wait(lambda: any(campaign.folder.glob("*/1/status.json")))
    alpha.play(log=str(campaign.log))
    said = campaign.end(driver)
    assert "beta does not answer" in said and "beta answers again" in said, said
    assert "a second copy, from alpha: the same bytes" in said, said
    campaign.check(1)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to give a host a small disk")
def test_a_full_disk_and_a_clock_that_is_two_hours_off(campaign: Campaign) -> None:
    """What a host with a full disk begins is done by another; a wrong clock is in nobody's way."""
    alpha, beta, _ = campaign.hosts
    alpha.play(log=str(campaign.log), kib=64 << 10)
    beta.play(log=str(campaign.log), seconds_off=7200)
    alpha.end()
    alpha.begin(disk_kib=32 << 10)
    with contextlib.ExitStack() as back:
        back.callback(alpha.begin)
        back.callback(alpha.end)
        said = campaign.go(3, "ssh:alpha,beta")
    assert "its worker was cut short (on alpha)" in said and "left: nothing" in said, said
    campaign.check(3)
    assert set(campaign.kept()["runs"].values()) == {"beta"}


def test_hosts_that_cannot_do_runs_are_named(campaign: Campaign) -> None:
    campaign.hosts[0].end()
    with contextlib.ExitStack() as back:
        back.callback(campaign.hosts[0].begin)
        assert campaign.begin(1, "ssh:alpha").wait(WAIT_S) != 0
    said = campaign.said()
    assert "alpha: left out: it does not answer: " in said
    assert "no host of --on can do runs" in said
    shutil.rmtree(campaign.folder)
