# SPDX-License-Identifier: GPL-2.0-or-later
"""Both README commands on fresh Debian hosts, as root and as an ordinary user: the same run."""

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from contract.run_files import META, STATUS
from tests.support.fleet import Fleet, MainJob, meta_of
from tests.support.fresh_host import ROOT, USER, FreshHost, NoSuite
from tests.support.vms import wait_for

pytestmark = [pytest.mark.slow, pytest.mark.timeout(2700)]
HOSTS = [
    pytest.param(
        debian, user, marks=pytest.mark.jobs(f"{debian} {'root' if user == ROOT else 'user'}")
    )
    for debian in ("12", "13")
    for user in (ROOT, USER)
]
# What meta.json says of the host, and not of the guest.
OF_THE_HOST = {"host"}
MEMORY_KIB, APART_KIB = 8 << 10, 64


def main_job(fleet: Fleet, debian: str, user: str) -> MainJob:
    """The job, done; skipped if the mirror does not have this Debian."""
    try:
        return fleet.main_job(debian, user).result()
    except NoSuite as error:
        pytest.skip(str(error))


def facts_of_guest(run: Path) -> dict[str, Any]:
    """meta.json without what it says of the host."""
    return {name: value for name, value in meta_of(run).items() if name not in OF_THE_HOST}


def same_bytes(run: Path, other: Path) -> list[str]:
    """The names of the files in which two runs differ: all bytes count but the host's facts."""
    names = {path.name for path in run.iterdir()} | {path.name for path in other.iterdir()}
    differing = []
    for name in sorted(names):
        files = (run / name, other / name)
        if not all(file.is_file() for file in files):
            differing.append(name)
        elif name == META:
            if facts_of_guest(run) != facts_of_guest(other):
                differing.append(name)
        elif files[0].read_bytes() != files[1].read_bytes():
            differing.append(name)
    return differing


@pytest.mark.parametrize(("debian", "user"), HOSTS)
def test_the_main_job_on_a_fresh_host(
    fleet: Fleet, debian: str, user: str, record_property: Callable[[str, object], None]
) -> None:
    job = main_job(fleet, debian, user)
    output = job.output
    assert output.status == 0, output.text
    first, ready = output.first(r"^\["), output.first(r"^run 1 of")
    record_property(
        "measured",
        f"Debian {debian} as {user}: {output.seconds:.0f} s in all; ready to run after"
        f" {ready:.0f} s, first line of the run after {first:.0f} s",
    )
    assert (job.results / "report" / "index.html").stat().st_size > 100_000
    assert json.loads((job.run / STATUS).read_text())["state"] == "completed"
    meta = meta_of(job.run)
    assert (meta["accelerator"], meta["clock"]["kind"]) == ("tcg", "guest")
    assert 0 < meta["observing"]["memory_kib"] <= MEMORY_KIB
    owner = job.results.stat().st_uid
    assert owner == job.host.path(job.clone).stat().st_uid


@pytest.mark.jobs("12 root", "12 user", "13 root", "13 user")
@pytest.mark.parametrize(("debian", "user"), [("12", USER), ("13", ROOT), ("13", USER)])
def test_the_run_is_the_same_on_each(fleet: Fleet, debian: str, user: str) -> None:
    jobs = main_job(fleet, "12", ROOT), main_job(fleet, debian, user)
    cost = [meta_of(job.run)["observing"]["memory_kib"] for job in jobs]
    assert abs(cost[0] - cost[1]) <= APART_KIB, cost
    guests = [meta_of(job.run)["guest"] for job in jobs]
    assert guests[0] == guests[1]
    assert same_bytes(jobs[0].run, jobs[1].run) == []


@pytest.mark.jobs("tests")
def test_the_suites_own_tests_on_debian_13(
    fleet: Fleet, record_property: Callable[[str, object], None]
) -> None:
    try:
        parts = fleet.own_tests().result()
    except NoSuite as error:
        pytest.skip(str(error))
    for output in parts:
        assert output.status == 0, output.text
    seconds = " and ".join(f"{output.seconds:.0f} s" for output in parts)
    record_property("measured", f"tests/run.sh on Debian 13: fast tests and VM tests, {seconds}")


LEFT = """\
import sys
from pathlib import Path
from tests.support.fresh_host import ROOT, FreshHost
host = FreshHost(Path(sys.argv[1]), Path(sys.argv[2]))
print("ready", flush=True)
host.run(ROOT, "/", "sh", "-c", "setsid sleep 1000 & sleep 1000", within_s=900)
"""


def in_root(root: Path) -> list[str]:
    """The processes whose root is there, and mounts below it."""
    found = [line for line in Path("/proc/mounts").read_text().splitlines() if str(root) in line]
    for link in Path("/proc").glob("[0-9]*/root"):
        try:
            if link.samefile(root):
                found.append(link.parent.name)
        except OSError:
            continue
    return found


def test_nothing_is_left_of_a_host_whose_tests_are_killed(fleet: Fleet) -> None:
    root = fleet.folder / "killed"
    base = fleet.base("12").result()
    argv = [sys.executable, "-c", LEFT, str(base), str(root)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
        assert wait_for(lambda: len(in_root(root)) >= 3, 20), in_root(root)
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert wait_for(lambda: in_root(root) == [], 10), in_root(root)


def test_a_fresh_host_has_what_a_new_machine_has(fleet: Fleet) -> None:
    host: FreshHost = fleet.host("12", "bare")
    assert "qemu" not in host.check("dpkg-query", "-W")
    output = host.run(USER, "/", "sh", "-c", "sudo id -u; id -u; unshare -r id -u", within_s=60)
    assert output.text.split() == ["0", "1000", "0"]
