# SPDX-License-Identifier: GPL-2.0-or-later
"""The suite under KVM, really run: in an emulated machine that has it (outer_machine.py)."""

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from contract.run_files import STATUS
from tests.support.fleet import Fleet, UnderKvm, meta_of, run_of
from tests.support.fresh_host import NoSuite

pytestmark = [pytest.mark.slow, pytest.mark.jobs("kvm"), pytest.mark.timeout(2700)]


@pytest.fixture(scope="module")
def under_kvm(fleet: Fleet) -> UnderKvm:
    try:
        return fleet.under_kvm().result()
    except NoSuite as error:
        pytest.skip(str(error))


def state(run: Path) -> tuple[str, str]:
    said = json.loads((run / STATUS).read_text())
    return said["state"], said["why"]


def test_the_main_job_runs_under_kvm(under_kvm: UnderKvm) -> None:
    campaign = under_kvm.results / "kvm"
    run = run_of(campaign)
    assert state(run)[0] == "completed"
    meta = meta_of(run)
    assert meta["accelerator"] == "kvm"
    assert meta["accelerator_reason"] == "a kernel booted to user space under KVM"
    assert meta["clock"]["kind"] == "host"
    assert (meta["disk"]["kind"], meta["disk"]["iops"]) == ("rotating", 57)
    assert "seed" not in meta
    assert (campaign / "report" / "index.html").stat().st_size > 100_000


def test_the_disk_is_the_models(
    under_kvm: UnderKvm, record_property: Callable[[str, object], None]
) -> None:
    """Nothing is faster than the model; an emulated host in the way makes it slower."""
    speeds = json.loads((under_kvm.results / "small" / "disk-speed.json").read_text())
    a_read = 1 / 57 + 4096 / 58e6
    record_property("measured", f"random reads under KVM: {speeds['reads_per_s']:.1f} a second")
    for name in ("reads_per_s", "reads_per_s_32"):
        assert 0.5 / a_read < speeds[name] < 1.02 / a_read, speeds


def test_a_panic_and_a_killed_qemu_are_results(under_kvm: UnderKvm) -> None:
    panicked, killed = (under_kvm.results / "small" / name for name in ("panicked", "killed"))
    ended, why = state(panicked)
    assert ended == "panicked" and "sysrq triggered crash" in why
    assert state(killed) == ("aborted", "QEMU died of SIGKILL")
    for run in (panicked, killed):
        assert meta_of(run)["accelerator"] == "kvm"
        lines = (run / "latency-heartbeat.log").read_text().splitlines()
        assert float(lines[-1].split()[0]) > 2.0


def test_it_is_not_compared_with_the_guests_clock(under_kvm: UnderKvm, tmp_path: Path) -> None:
    both = tmp_path / "both"
    shutil.copytree(under_kvm.results / "kvm", both)
    shutil.copytree(run_of(under_kvm.counted).parent, both / "counted")
    command = [sys.executable, "-m", "analysis.compare", str(both)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode != 0
    (line,) = done.stderr.splitlines()
    assert "accelerator" in line and "kvm" in line
