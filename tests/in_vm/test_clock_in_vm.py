# SPDX-License-Identifier: GPL-2.0-or-later
"""The laptop in a guest: its disk is the model's, and its seconds are its own."""

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from analysis.reading.load import Run, load_campaign
from contract.run_files import META
from tests.support.vms import command, disk_speeds, nothing_left

pytestmark = [pytest.mark.vm, pytest.mark.own_clock, pytest.mark.timeout(900)]

SMALL = ["--profile", "quick", "--commits", "6000", "--gitk", "2", "--accel", "tcg"]


@contextlib.contextmanager
def busy(loops: int) -> Iterator[None]:
    """Others at work on the host."""
    spinning = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(loops)]
    try:
        yield
    finally:
        for one in spinning:
            one.kill()
            one.wait()


@pytest.fixture(scope="module")
def laptop(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, float]]:
    """The laptop's run, with two more disks, and its disks' figures."""
    folder = tmp_path_factory.mktemp("laptop") / "run"
    return folder, disk_speeds(folder, *SMALL, more_disks=2)


def test_the_disk_is_the_models(laptop: tuple[Path, dict[str, float]]) -> None:
    _, found = laptop
    a_read = 1 / 57 + 4096 / 58e6
    assert found["reads_per_s"] == pytest.approx(1 / a_read, rel=0.02)
    assert found["reads_per_s_32"] == pytest.approx(1 / a_read, rel=0.02)
    assert found["read_bytes_per_s"] == pytest.approx(58e6, rel=0.02)
    assert found["write_bytes_per_s"] == pytest.approx(58e6, rel=0.02)


def test_two_disks_at_once_share_nothing(laptop: tuple[Path, dict[str, float]]) -> None:
    _, found = laptop
    assert found["both_reads_per_s"] == pytest.approx(2 * found["reads_per_s"], rel=0.02)
    assert found["of_them_one_reads_per_s"] == pytest.approx(found["reads_per_s"], rel=0.02)
    # The CPU is seen, too: what it does for one disk the other does not wait for, but nearly.
    assert found["both_read_bytes_per_s"] == pytest.approx(2 * 58e6, rel=0.05)


def contents(run_dir: Path) -> dict[str, bytes]:
    """A run's files."""
    return {path.name: path.read_bytes() for path in run_dir.iterdir() if path.is_file()}


@pytest.mark.parametrize(("machine", "iops"), [("ssd", 11_700), ("emmc", 5_500)])
def test_flash_does_several_at_a_time(tmp_path: Path, machine: str, iops: int) -> None:
    found = disk_speeds(tmp_path / "run", *SMALL, "--machine", machine)
    # A request is dear for 500 MIPS, so that one at a time the CPU is seen, too.
    assert 0.5 * iops < found["reads_per_s"] < iops
    assert found["reads_per_s_32"] > 1.1 * found["reads_per_s"]
    assert found["read_bytes_per_s"] == pytest.approx(250e6, rel=0.1)


def small_run(out: Path) -> str:
    """What run_test.sh said of a run that has everything, but little of it."""
    with (
        nothing_left(),
        command(*SMALL, "--kernel", "debian:6.12", "--memory", "192M", "--out", str(out)) as done,
    ):
        said, errors = done.communicate(timeout=800)
    assert done.returncode == 0, errors
    return said


@pytest.fixture(scope="module")
def campaign(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A campaign of one run, and what was said."""
    out = tmp_path_factory.mktemp("campaign") / "c"
    return out, small_run(out)


@pytest.mark.slow
def test_the_whole_run_again_beside_others_at_work(
    campaign: tuple[Path, str], tmp_path: Path
) -> None:
    with busy(2):
        small_run(tmp_path / "again")
    # Byte for byte, each line with the microsecond of the guest's.
    first, again = (contents(next(out.glob("*/1"))) for out in (campaign[0], tmp_path / "again"))
    assert {"vmstat.tsv", "latency-gitk-1.log", "tasks.tsv", "console.log", META} <= set(first)
    assert set(first) == set(again)
    assert [name for name in first if first[name] != again[name]] == []


def test_a_run_on_the_laptop(campaign: tuple[Path, str]) -> None:
    out, said = campaign
    assert "on the guest's clock" in said and "of the guest's in" in said
    (run,) = load_campaign(out).runs
    assert isinstance(run, Run) and run.state == "completed"
    assert run.fact("clock", "kind") == "guest" and run.fact("seed") == 1
    assert run.fact("machine", "name") == "laptop" and run.fact("machine", "mips") == 500
    assert run.fact("cpus") == 1 and run.fact("disk", "kind") == "rotating"
    summary = (out / "report" / "summary.txt").read_text()
    assert "laptop: 1 CPU of 500 MIPS, rotating disk of 57 accesses/s and 58" in (
        " ".join(summary.split())
    )
