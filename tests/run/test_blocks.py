# SPDX-License-Identifier: GPL-2.0-or-later
"""On the hosts' own clocks each host does whole blocks, one run at a time; ssh and Slurm played."""

import json
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from benchmarks.fleet import played_jobs
from benchmarks.synthetic_results.make import write_run
from contract.run_record import write_status
from run.hosts import proof, sending, ssh_workers
from run.hosts.one_host import OneHost
from run.hosts.proof import Proof
from run.hosts.ssh_workers import SshWorkers
from run.jobs import elsewhere, run_copies
from run.jobs.elsewhere import Blocks
from run.jobs.job import Job
from run.slurm import arrays, options, slurm_workers
from run.slurm.slurm_workers import SlurmWorkers
from tests.run.test_slurm_queue import PlayedQueue, Said
from vm.guest import Timing
from vm.qemu import GUEST, HOST

LABELS = ("6.12", "7.2", "7.3")


def job(label: str, number: int) -> Job:
    """A job on the host's clock."""
    made = played_jobs.job(label, number)
    return replace(made, guest=replace(made.guest, timing=Timing(HOST, "")))


class PlayedHost:
    """A host that does each run in the time between two looks, in the order it is given them."""

    slots = 1

    def __init__(self, name: str, state: str = "completed") -> None:
        self.name, self.state = name, state
        self.did: list[tuple[str, int]] = []
        self.most = 0
        self._jobs: dict[str, dict[str, Any]] = {}

    def call(self, action: str, **asked: Any) -> dict[str, Any]:
        if action == "look":
            self.most = max(self.most, len(self._jobs))
            over = {"alive": False, "run": "", "said": "", "guest_s": None, "frozen": []}
            return {"jobs": [{"job": name, "state": self.state, **over} for name in self._jobs]}
        for name in asked["jobs"]:
            self._jobs.pop(name, None)
        return {}

    def send(self, job: Job) -> None:
        pass

    def start(self, entry: Mapping[str, Any], name: str) -> None:
        self._jobs[name] = dict(entry)
        if self.state == "completed":
            self.did.append((entry["label"], entry["number"]))

    def fetch(self, found: Mapping[str, Any], run: Path) -> tuple[str, str, None]:
        run.mkdir(parents=True)
        write_status(run, self.state, "as played", elapsed_s=1.0)
        self._jobs.pop(found["job"])
        return self.state, "as played", None


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(ssh_workers, "LOOK_S", 0.01)
    monkeypatch.setattr(sending, "needed", lambda job: {})
    for name in ("LOOK_S", "SUBMIT_S", "SETTLE_S"):
        monkeypatch.setattr(slurm_workers, name, 0.0)
    return tmp_path


def ssh_campaign(
    folder: Path, hosts: list[PlayedHost], runs: int, before: Mapping[str, str]
) -> dict[str, str]:
    """A campaign of three variants, as a runner begins its runs: who did which."""
    done = dict(before)
    workers = SshWorkers(
        cast(list[OneHost], hosts),
        {},
        folder,
        lambda run, host: done.update({f"{run.parent.name}/{run.name}": host}),
        Blocks(len(LABELS), before),
    )
    assert workers.slots == len(hosts) * len(LABELS)
    left = [
        (label, n) for n in range(1, runs + 1) for label in LABELS if f"{label}/{n}" not in done
    ]
    busy = 0
    try:
        until = time.monotonic() + 120
        while (left or busy) and time.monotonic() < until:
            while left and busy < workers.slots:
                label, number = left.pop(0)
                workers.submit(job(label, number), folder / label / str(number), Said(), bool)
                busy += 1
            for one in workers.look(0.01):
                busy -= 1
                if one.state == "aborted":
                    one.run.rename(one.run.with_name(f"{one.run.name}.cut-{time.monotonic_ns()}"))
                    left.insert(0, one.job.key)
    finally:
        workers.close()
    return done


def test_by_ssh_each_host_does_whole_blocks_and_variants_take_turns(place: Path) -> None:
    hosts = [PlayedHost("alpha"), PlayedHost("beta")]
    done = ssh_campaign(place, hosts, 6, {})
    for number in range(1, 7):
        assert len({done[f"{label}/{number}"] for label in LABELS}) == 1
    for one in hosts:
        assert one.most <= 1
        numbers = [number for _, number in one.did]
        assert numbers == sorted(numbers) and [label for label, _ in one.did[:3]] == list(LABELS)


def test_a_run_that_was_fetched_holds_no_slot(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is no other driver's run, for which a slot is kept so long."""
    monkeypatch.setattr(elsewhere, "KNOWN_S", 3600.0)
    done = ssh_campaign(place, [PlayedHost("alpha")], 2, {})
    assert len(done) == 2 * len(LABELS)


def test_a_block_that_a_host_has_begun_is_gone_on_with_there(place: Path) -> None:
    done = ssh_campaign(
        place, [PlayedHost("alpha"), PlayedHost("beta")], 2, {"6.12/1": "beta", "6.12/2": "alpha"}
    )
    assert [done[f"{label}/1"] for label in LABELS] == ["beta"] * 3
    assert [done[f"{label}/2"] for label in LABELS] == ["alpha"] * 3


def test_the_blocks_of_a_host_that_is_left_out_go_to_another(place: Path) -> None:
    bad, good = PlayedHost("alpha", "aborted"), PlayedHost("beta")
    done = ssh_campaign(place, [bad, good], 3, {"6.12/1": "alpha"})
    assert set(done.values()) == {"alpha", "beta"} and len(good.did) == 8 and bad.did == []


class SlurmCampaign:
    """Two variants in a played queue."""

    def __init__(self, folder: Path, slots: int) -> None:
        self.folder = folder / "c"
        self.queue = PlayedQueue(self.folder)
        self.done: dict[str, str] = {}
        made = arrays.Arrays(
            options.parse("slurm:nodelist=n[1-2]"), self.folder, Path("/suite"), job("6.12", 1)
        )
        self.workers = SlurmWorkers(
            self.queue,
            slots,
            "name",
            self.folder,
            made,
            lambda run, node: self.done.update({f"{run.parent.name}/{run.name}": node}),
            Blocks(2, {}),
        )
        for number in (1, 2):
            for label in LABELS[:2]:
                run = self.folder / label / str(number)
                self.workers.submit(job(label, number), run, Said(), lambda: False)

    def look(self) -> None:
        """Twice, so that what was seen is acted on."""
        for _ in range(2):
            self.workers._next_ask = 0.0
            self.workers.look(0)

    def submitted(self) -> list[tuple[str, int, str]]:
        """Each task: its run, and the nodes that may do it."""
        found = []
        for (comment, index), words in zip(self.queue.known, self.queue.words, strict=True):
            folder = self.queue.folder((comment, index))
            if not folder.submission.exists():
                continue
            entry = folder.entry()["job"]
            (nodes,) = [word for word in words if word.startswith("--nodelist=")]
            found.append((entry["label"], entry["number"], nodes.removeprefix("--nodelist=")))
        return found


def test_in_slurm_the_rest_of_a_block_waits_for_its_node(place: Path) -> None:
    campaign = SlurmCampaign(place, slots=2)
    assert campaign.workers.slots == 4
    campaign.look()
    assert campaign.submitted() == [("6.12", 1, "n[1-2]")]
    assert "--exclusive" in campaign.queue.words[0]
    assert not [word for word in campaign.queue.words[0] if word.startswith("--cpus")]
    campaign.queue.set(1, "RUNNING", "n2")
    campaign.look()
    assert campaign.submitted()[1:] == [("7.2", 1, "n2"), ("6.12", 2, "n[1-2]")]
    campaign.queue.set(2, "RUNNING", "n1")
    campaign.look()
    assert campaign.submitted()[3:] == [("7.2", 2, "n1")]


def test_a_node_that_goes_away_does_not_hold_its_block(place: Path) -> None:
    campaign = SlurmCampaign(place, slots=1)
    campaign.look()
    campaign.queue.set(1, "RUNNING", "n2")
    campaign.look()
    campaign.queue.set(1, "PENDING", reason="ReqNodeNotAvail, UnavailableNodes:n2")
    campaign.look()
    assert campaign.queue.cancelled == ["2_0"]
    campaign.queue.set(2, "RUNNING", "n1")
    campaign.look()
    assert campaign.submitted() == [
        *(("6.12", 1, "n[1-2]"), ("6.12", 2, "n[1-2]"), ("7.2", 2, "n1"), ("7.2", 1, "n[1-2]")),
    ]


def test_on_the_hosts_clock_a_proof_is_of_facts_and_copies_may_differ(tmp_path: Path) -> None:
    def made(name: str, clock: str, text: str, qemu: str = "7.2", **more: Any) -> Path:
        meta = {"clock": {"kind": clock}, "machine": {"qemu": qemu}, "accelerator": "kvm", **more}
        files: dict[str, str | bytes] = {
            "meta.json": json.dumps(meta),
            "latency-gitk-1.log": f"0.1 0.1 {text}\n",
        }
        return write_run(tmp_path / name, files)

    def proved(run: Path) -> Proof:
        found = proof.read_proof(run)
        assert isinstance(found, Proof)
        return found

    one, other = (proved(made(f"h{n}", HOST, f"x{n}", t0=1.0)) for n in (1, 2))
    assert one.files == other.files
    assert "did not come to its workload: completed" in str(proof.read_proof(made("h4", HOST, "")))
    third = proved(made("h3", HOST, "x", qemu="10.0", t0=1.0))
    assert third.files != one.files and "machine.qemu 10.0 here" in proof.difference(
        third, one, "a"
    )
    mine, theirs = (proved(made(f"g{n}", GUEST, f"x{n}")) for n in (1, 2))
    assert mine.files != theirs.files
    assert run_copies.settle(made("copy", HOST, "y"), tmp_path / "h1") == []
    assert not (tmp_path / "copy").exists()
    assert run_copies.settle(made("copy", GUEST, "y"), tmp_path / "g1") == ["latency-gitk-1.log"]
