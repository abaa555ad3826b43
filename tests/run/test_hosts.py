# SPDX-License-Identifier: GPL-2.0-or-later
"""--on, what a campaign keeps of its hosts, and when a host has proved itself; no ssh here."""

import fcntl
import io
import json
import tarfile
from pathlib import Path
from typing import Any, cast

import pytest

from benchmarks.fleet import played_jobs
from contract.plan import HOSTS_FILE
from errors import UserError
from run.arguments import parse
from run.campaign import Campaign
from run.hosts import host_list, kept, on_host, opening, proof, sending
from run.hosts.host_list import Host
from run.hosts.kept import Kept
from run.hosts.one_host import OneHost
from run.hosts.proof import Proof
from run.hosts.ssh import Remote
from run.jobs import plan_file
from setup import cache
from tests.run.test_campaign import kernel
from vm.qemu import GUEST, HOST


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def test_hosts_are_a_list_or_a_file(tmp_path: Path) -> None:
    assert host_list.hosts("local") == []
    assert host_list.hosts("ssh:alpha=4,me@beta.example") == [
        Host("alpha", 4),
        Host("me@beta.example", 1),
    ]
    file = tmp_path / "hosts"
    file.write_text("# ours\nalpha 4\n\nbeta=2  # the old one\ngamma\n")
    assert [(one.name, one.slots) for one in host_list.hosts(f"ssh:{file}")] == [
        ("alpha", 4),
        ("beta", 2),
        ("gamma", 1),
    ]


@pytest.mark.parametrize(
    ("where", "said"),
    [
        ("cloud", "neither local nor ssh:HOSTS nor slurm[:OPTIONS]"),
        ("ssh:", "neither local nor ssh:HOSTS"),
        ("slurm:array=1-4", "unknown option 'array': use slots, account,"),
        ("slurm:slots=0", "'0' is not valid for slots"),
        ("slurm:time=1,time=2", "time is given twice"),
        ("slurm:partition=a b", "'a b' is not valid for partition"),
        ("ssh:a=0", "'a=0' is no HOST=SLOTS"),
        ("ssh:-oProxyCommand=x", "is no HOST=SLOTS"),
        ("ssh:a;b", "is no HOST=SLOTS"),
        ("ssh:a=2,a", "a is named twice"),
    ],
)
def test_what_is_no_list_of_hosts_is_a_usage_error(
    where: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        parse(["--on", where])
    assert ended.value.code == 2
    error = capsys.readouterr().err
    assert said in error and error.count("\n") == 1


@pytest.mark.parametrize("more", [["--jobs", "2"], ["--device", "/dev/sdx5"]])
def test_what_does_not_go_with_other_hosts(more: list[str]) -> None:
    assert parse(["--on", "local", *more])
    with pytest.raises(SystemExit):
        parse(["--on", "ssh:a", *more])


def test_a_plan_that_is_passed_on_names_no_hosts(tmp_path: Path) -> None:
    assert host_list.without(["--on", "ssh:a", "--runs", "2", "--on=local"]) == ["--runs", "2"]
    argv = ["--out", str(tmp_path / "c"), "--kernel", "debian:6.1", "--on", "ssh:secret"]
    options = parse(argv)
    Campaign(options, argv).enter([(one, kernel("6.1")) for one in options.variants])
    assert "secret" not in (tmp_path / "c" / "plan.toml").read_text()


def test_a_bisect_on_other_hosts_needs_the_guests_clock() -> None:
    options = parse([])
    for clock in (GUEST, HOST):
        opening.check("ssh:a", options, [clock])
    opening.check("ssh:a", options, [GUEST], bisects=True)
    with pytest.raises(UserError, match="--bisect with --on needs the guest's clock"):
        opening.check("ssh:a", options, [GUEST, HOST], bisects=True)


@pytest.mark.parametrize(
    ("where", "missing"), [("ssh:a", "rsync"), ("slurm", "sbatch, scancel, scontrol, squeue")]
)
def test_what_is_not_installed_here_is_named_before_anything_is_made(
    where: str, missing: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UserError, match=f"needs {missing} here .install it"):
        opening.check(where, parse([]), [GUEST])


def test_a_campaign_knows_where_it_was(tmp_path: Path) -> None:
    assert opening.chosen([], tmp_path) == "local"
    one = Kept("ssh:a=2")
    one.write(tmp_path)
    assert kept.read(tmp_path) == one and len(one.campaign) == 16
    assert opening.chosen(["--resume", str(tmp_path)], tmp_path) == "ssh:a=2"
    assert opening.chosen(["--on=local"], tmp_path) == "local"
    for text in ("", "[]", '{"format": 1}', '{"format": 2}'):
        (tmp_path / HOSTS_FILE).write_text(text)
        with pytest.raises(UserError, match="is damaged"):
            kept.read(tmp_path)


def test_a_run_that_is_under_way_elsewhere_keeps_its_place(tmp_path: Path) -> None:
    out = tmp_path / "c"
    for resume in ("--out", "--resume"):
        argv = [resume, str(out), "--kernel", "debian:6.1", "--runs", "2"]
        options = parse(argv)
        campaign = Campaign(options, argv)
        campaign.enter([(one, kernel("6.1")) for one in options.variants])
        assert campaign.begin("6.1", 1, make=False) == (out / "6.1" / "1", 1)
        assert not (out / "6.1" / "1").exists()
    (out / "6.1" / "1").mkdir()
    campaign.set_aside(out / "6.1" / "1")
    assert campaign.begin("6.1", 1, make=False)[1] == 2


def test_a_plan_for_a_host_names_no_place_of_this_one() -> None:
    job = played_jobs.job()
    entry = plan_file.portable(job)
    image = entry["files"]["kernel image"]
    assert image["name"] == f"elsewhere/{job.guest.kernel.image_digest}"
    assert str(cache.place().parent) not in json.dumps(entry)


def test_two_jobs_are_the_same_if_their_runs_would_be() -> None:
    def identity(where: str = ".", **facts: Any) -> str:
        job = played_jobs.job(memory=facts.pop("memory", 1 << 28))
        cast(dict[str, Any], job.facts).update(facts)
        return plan_file.identity(plan_file.portable(job), where)

    assert identity(suite="a") == identity(suite="b")
    others = [identity(), identity("search"), identity(order=9), identity(memory=1 << 27)]
    assert len(set(others)) == 4


def test_the_suites_tarball_is_the_same_again_and_has_what_a_job_needs() -> None:
    digest, packed = sending.suite()
    sending.suite.cache_clear()
    assert sending.suite() == (digest, packed)
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        names = set(archive.getnames())
    assert {"run/one.py", "run/hosts/on_host.py", "vm/guest_init.sh", "errors.py"} <= names
    assert "monitors/sampler/sampler.c" in names or any(one.endswith(".c") for one in names)
    assert not [one for one in names if "__pycache__" in one or one.startswith(("tests", "/"))]


def test_a_job_is_alive_as_long_as_its_plan_is_locked(tmp_path: Path) -> None:
    assert not on_host._is_alive(tmp_path)
    plan = tmp_path / on_host.PLAN
    plan.write_text("{}")
    assert not on_host._is_alive(tmp_path)
    with open(plan, "r+") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert on_host._is_alive(tmp_path)
    assert not on_host._is_alive(tmp_path)


def test_hosts_with_one_home_keep_their_jobs_apart() -> None:
    alpha, beta = (OneHost(Host(name), "c")._campaign for name in ("me@alpha", "me@beta"))
    assert alpha != beta and "@" not in alpha


def test_a_host_that_answers_slowly_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The shell there reads for half a second what its user has in ~/.bashrc."""
    wrapper = tmp_path / "ssh"
    wrapper.write_text('#!/bin/sh\nsleep 0.5\nfor word; do :; done\nexec sh -c "$word"\n')
    wrapper.chmod(0o755)
    monkeypatch.setenv("DESKTOP_FREEZE_SSH", str(wrapper))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(opening, "SLOW_S", 0.4)
    host = OneHost(Host("alpha"), "c")
    assert opening._open(host) == "" and host.answered_s >= 0.5
    assert "alpha took " in capsys.readouterr().out
    monkeypatch.setattr(opening, "SLOW_S", 600.0)
    assert opening._open(host) == ""
    assert capsys.readouterr().out == ""


class Played:
    """Hosts whose short runs are played: `made` are what each makes, run after run."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, **made: str) -> None:
        self.tried: list[str] = []
        self._made = {name: iter(runs) for name, runs in made.items()}
        self._hosts = [OneHost(Host(name), "c") for name in made]
        monkeypatch.setattr(proof, "_proof", self._proof)

    def _proof(self, host: OneHost, *_: object) -> Proof | str:
        self.tried.append(host.name)
        run = next(self._made[host.name])
        if run == "-":
            return "no room"
        qemu = "10.0" if run == "x" else "7.2"
        return Proof({"vmstat.tsv": run, "kern.log": "k"}, {"machine": {"qemu": qemu}})

    def left_out(self, reference: dict[str, str] | None = None) -> dict[str, str]:
        job = played_jobs.job()
        why, self.reference = proof.left_out(self._hosts, job, reference or {}, lambda: False)
        return why


def test_the_host_that_differs_from_most_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    hosts = Played(monkeypatch, a="xxx", b="1", c="1", d="-")
    why = hosts.left_out()
    assert why["d"] == "no room" and why.keys() == {"a", "d"}
    assert why["a"] == ("its proof differs in vmstat.tsv (machine.qemu 10.0 here, 7.2 on b)")
    assert hosts.reference["vmstat.tsv"] == "1"
    assert hosts.tried.count("a") == 3 and hosts.tried.count("b") == 1


def test_a_host_may_try_again(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Played(monkeypatch, a="1", b="21", c="1").left_out() == {}
    assert Played(monkeypatch, a="12", b="23").left_out() == {}


def test_of_two_that_never_agree_the_first_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    why = Played(monkeypatch, a="123", b="456").left_out()
    assert why == {"b": "its proof differs in vmstat.tsv (with the same versions and digests)"}


def test_a_host_alone_is_its_own_proof_and_later_ones_are_held_to_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    first = Played(monkeypatch, a="1")
    assert first.left_out() == {}
    assert Played(monkeypatch, b="222").left_out(first.reference).keys() == {"b"}
    assert Played(monkeypatch, b="21").left_out(first.reference) == {}


def test_what_is_not_installed_here_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Whoever starts it, rsync or ssh: one line, which says what to install."""
    monkeypatch.setenv("PATH", str(tmp_path))
    remote = Remote("alpha")
    for program, act in (
        ("ssh", lambda: remote.run("true")),
        ("rsync", lambda: remote.fetch("/x", tmp_path)),
    ):
        with pytest.raises(UserError, match=f"^{program}: No such file .*: install it here"):
            act()
