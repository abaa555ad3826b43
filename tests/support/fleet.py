# SPDX-License-Identifier: GPL-2.0-or-later
"""The suite on several fresh hosts: what each does is a job; two jobs at a time, each done once."""

import concurrent.futures
import json
import shutil
import subprocess
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, cast

from tests.support import fresh_host, outer_machine
from tests.support.fresh_host import CLONE, HOMES, ROOT, USER, FreshHost, Output

Made = TypeVar("Made")
AT_ONCE = 2
CACHE = ".cache/desktop-freeze"
FRESH, COUNTED = "results/fresh", "results/counted"
QUICK = ("--kernel", "debian:6.12", "--profile", "quick")
FEWER = (*QUICK, "--commits", "6000")
MAIN_JOB_S, SMALL_JOB_S, TESTS_S, KVM_S, CONTAINER_S = 900.0, 400.0, 1500.0, 1200.0, 900.0
# What Debian's podman needs to run without root.
PODMAN = ("crun", "fuse-overlayfs", "passt", "podman", "slirp4netns", "uidmap")
RUN_IN_VM = "tests/in_vm/test_run_in_vm.py"  # but for a second run, which shows no freeze
BASE_IMAGE = "localhost/debian:12"


@dataclass(frozen=True)
class MainJob:
    """One of the suite's commands on a host: how it went, and where its results are."""

    host: FreshHost
    user: str
    output: Output
    out: str = FRESH

    @property
    def clone(self) -> str:
        """The suite's folder, as the host names it."""
        return f"{HOMES[self.user]}/{CLONE}"

    @property
    def results(self) -> Path:
        """The campaign's folder, on this machine."""
        return self.host.path(f"{self.clone}/{self.out}")

    @property
    def run(self) -> Path:
        """The folder of its only run."""
        return run_of(self.results)


@dataclass(frozen=True)
class UnderKvm:
    """What came out of a machine with KVM: the campaign `kvm`, small runs, and a run beside it.

    counted: the campaign of the same run on the guest's clock, not in that machine.
    """

    results: Path
    counted: Path


def run_of(campaign: Path) -> Path:
    """The folder of a campaign's only run."""
    (meta,) = campaign.glob("*/1/meta.json")
    return meta.parent


def meta_of(run: Path) -> dict[str, Any]:
    """A run's meta.json."""
    found: dict[str, Any] = json.loads((run / "meta.json").read_text())
    return found


class Fleet:
    """Fresh hosts below a folder. end() ends what still runs there, and removes all of it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._pool = concurrent.futures.ThreadPoolExecutor(AT_ONCE)
        self._jobs: dict[str, Future[Any]] = {}

    def _once(self, name: str, work: Callable[[], Made]) -> "Future[Made]":
        if name not in self._jobs:
            self._jobs[name] = self._pool.submit(work)
        return cast("Future[Made]", self._jobs[name])

    def end(self) -> None:
        """End all jobs, and remove the hosts."""
        self._pool.shutdown(wait=False, cancel_futures=True)
        fresh_host.end_all()
        self._pool.shutdown()
        shutil.rmtree(self.folder, ignore_errors=True)

    def base(self, debian: str) -> "Future[Path]":
        """A tar of a fresh Debian; NoSuite if the mirror does not have it."""

        def make() -> Path:
            tar = self.folder / f"debian-{debian}.tar"
            fresh_host.make_base(debian, tar)
            return tar

        return self._once(f"base {debian}", make)

    def host(self, debian: str, name: str) -> FreshHost:
        """A new host."""
        return FreshHost(self.base(debian).result(), self.folder / name)

    def main_job(self, debian: str, user: str) -> "Future[MainJob]":
        """The README's first command, on a host of its own, with nothing in the cache."""
        self.base(debian)

        def work() -> MainJob:
            host = self.host(debian, f"debian-{debian}-{user}")
            command = ("./run_test.sh", *QUICK, "--out", FRESH)
            output = host.run(user, host.clone(user), *command, within_s=MAIN_JOB_S)
            return MainJob(host, user, output)

        return self._once(f"main job {debian} {user}", work)

    def own_tests(self) -> "Future[list[Output]]":
        """The README's second command on Debian 13, by the ordinary user: two parts of it."""
        before = self.main_job("13", USER)

        def work() -> list[Output]:
            job = before.result()
            parts = (("-m", "not vm", "-n", "auto"), ("-k", "not memory_to_spare", RUN_IN_VM))
            return [
                job.host.run(USER, job.clone, "tests/run.sh", *part, within_s=TESTS_S)
                for part in parts
            ]

        return self._once("tests/run.sh", work)

    def under_kvm(self) -> "Future[UnderKvm]":
        """Runs under KVM, in a machine whose root is the Debian 12 host after its main job."""
        before = self.main_job("12", ROOT)

        def work() -> UnderKvm:
            job = before.result()
            counted = ("./run_test.sh", *FEWER, "--label", "counted", "--out", COUNTED)
            output = job.host.run(ROOT, job.clone, *counted, within_s=SMALL_JOB_S)
            assert output.status == 0, output.text
            job.host.check("apt-get", "clean")
            folder = self.folder / "kvm"
            folder.mkdir()
            results = outer_machine.run(job.host.root, _kvm_command(job.clone), folder, KVM_S)
            return UnderKvm(results, job.host.path(f"{job.clone}/{COUNTED}"))

        return self._once("KVM", work)

    def container(self) -> "Future[MainJob]":
        """The main job in a container, by the ordinary user of a Debian 13 without the suite's
        packages."""
        self.base("12"), self.base("13")

        def work() -> MainJob:
            host = self.host("13", "podman")
            host.check("apt-get", "-q", "update")
            install = ("env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-q", "-y", "install")
            host.check(*install, "--no-install-recommends", *PODMAN)
            # No registry is asked: the base has what the network needs here.
            base = self.host("12", "base-image")
            tar = host.path(f"{HOMES[USER]}/base.tar")
            subprocess.run(["tar", "-C", base.root, "-cf", tar, "."], check=True)
            shutil.rmtree(base.root)
            settings = fresh_host.network_settings().items()
            changes = [f"--change=ENV {name}={value}" for name, value in settings]
            clone = host.clone(USER)
            imported = host.run(
                USER, HOMES[USER], "podman", "import", *changes, "base.tar", BASE_IMAGE, within_s=60
            )
            assert imported.status == 0, imported.text
            command = ("env", f"BASE={BASE_IMAGE}", "./container.sh", *QUICK, "--out", FRESH)
            output = host.run(USER, clone, *command, within_s=CONTAINER_S)
            return MainJob(host, USER, output)

        return self._once("container", work)


def _kvm_command(clone: str) -> str:
    main_job = " ".join(FEWER)
    return f"""\
cd {clone}
export PYTHONPATH=$PWD
./run_test.sh --no-install --accel kvm {main_job} --label kvm --out /results/kvm
cut -d ' ' -f 1 /proc/uptime
.venv/bin/python -m tests.support.under_kvm /results/small
cut -d ' ' -f 1 /proc/uptime
"""
