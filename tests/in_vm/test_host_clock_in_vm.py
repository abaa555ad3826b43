# SPDX-License-Identifier: GPL-2.0-or-later
"""The laptop on the host's clock, as with KVM: its disk as a model, and where there can be none."""

from pathlib import Path

import pytest

from analysis.reading.load import Run, load_campaign
from tests.support import other_qemu
from tests.support.vms import command, disk_speeds, nothing_left

pytestmark = [pytest.mark.vm, pytest.mark.clock, pytest.mark.timeout(900)]

SMALL = ["--profile", "quick", "--commits", "4000", "--gitk", "2", "--accel", "tcg"]


def test_the_disk_is_the_models_on_the_hosts_clock(tmp_path: Path) -> None:
    """Nothing is faster than the model; a host in the way makes it slower."""
    found = disk_speeds(tmp_path / "run", *SMALL, "--clock", "host")
    a_read = 1 / 57 + 4096 / 58e6
    for name in ("reads_per_s", "reads_per_s_32"):
        assert 0.5 / a_read < found[name] < 1.02 / a_read, name
    for name in ("read_bytes_per_s", "write_bytes_per_s"):
        assert 0.5 * 58e6 < found[name] < 1.02 * 58e6, name


def test_without_the_model_qemu_throttles_and_it_is_said(tmp_path: Path) -> None:
    other = other_qemu.write(tmp_path / "qemu-other-way")
    out = tmp_path / "c"
    argv = [*SMALL, "--memory", "248M", "--qemu", other, "--out", str(out)]
    with nothing_left(), command(*argv) as process:
        said, errors = process.communicate(timeout=500)
    assert process.returncode == 0, errors
    (run,) = load_campaign(out).runs
    assert isinstance(run, Run) and run.state == "completed"
    assert run.fact("clock", "kind") == "host"
    assert other_qemu.NONE_CAME in str(run.fact("clock", "why"))
    assert run.fact("disk", "kind") is None and run.fact("disk", "iops") == 57
    assert run.fact("seed") is None
    for text in (said, (out / "report" / "compare.txt").read_text()):
        assert other_qemu.NONE_CAME in " ".join(text.split())
    assert "throttled by QEMU to 57 IOPS and 58 MB/s" in " ".join(said.split())
