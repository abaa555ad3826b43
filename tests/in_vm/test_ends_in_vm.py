# SPDX-License-Identifier: GPL-2.0-or-later
"""Every way in which a run can end early: classified, nothing lost, nothing left."""

import dataclasses
import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from contract.run_files import appended_files
from tests.support.gdb_stub import hang
from tests.support.vms import (
    COUNTED,
    SMALL,
    WhenUnderWay,
    command,
    guest,
    machine_state,
    nothing_left,
    options,
    processes,
    run_in_vm,
    wait_for,
    wait_for_start,
)
from vm import watch
from vm.machine import Machine

pytestmark = [pytest.mark.vm, pytest.mark.timeout(600)]
LONG = ["--passes", "1000", "--timeout", "900"]
BY_COMMAND = [*SMALL, *LONG, "--no-evidence"]  # which starts sooner
HLT_AND_AGAIN = b"\xf4\xeb\xfd"  # hlt; jmp to the hlt


@pytest.fixture(scope="module", autouse=True)
def _ready() -> None:
    """Fill the cache first: the deadlines within the tests are those of a run."""
    guest(*SMALL)


def status(run_dir: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((run_dir / "status.json").read_text())
    return found


def last_sample(run_dir: Path) -> float:
    rows = (run_dir / "vmstat.tsv").read_text().split("\n")[:-1]
    return float(rows[-1].split("\t")[0])


def sizes(run_dir: Path, gitks: int = 2) -> dict[str, int]:
    names = ["heartbeat", "player", *(f"gitk-{n}" for n in range(1, gitks + 1))]
    return {name: (run_dir / name).stat().st_size for name in appended_files(names)}


def assert_kept_to_the_last_second(run_dir: Path, workload_s: float) -> None:
    """The counters and the heartbeat reach to the end, by the host's clock, of the workload.

    A sample is due each 0.25 s. workload_s counts from when the host saw the start, so it is never
    too long.
    """
    assert workload_s >= 2.5
    assert last_sample(run_dir) >= workload_s - 1.5
    beats = (run_dir / "latency-heartbeat.log").read_text().split("\n")[:-1]
    assert float(beats[-1].split()[0]) >= workload_s - 2.5
    assert json.loads((run_dir / "meta.json").read_text())["kernel"]["release"]


def test_qemu_is_killed(tmp_path: Path) -> None:
    run_dir = tmp_path / "run"
    on_disk: dict[str, int] = {}
    ran: list[float] = []

    def kill(machine: Machine, began: float) -> None:
        on_disk.update(sizes(run_dir))
        ran.append(time.monotonic() - began)
        machine.process.send_signal(signal.SIGKILL)

    state, why = run_in_vm(run_dir, options(*LONG), booted=WhenUnderWay(run_dir, 5, kill))
    assert (state, why) == ("aborted", "QEMU died of SIGKILL")
    assert status(run_dir)["state"] == "aborted"
    for name, size in sizes(run_dir).items():
        assert size >= on_disk[name], name
    assert_kept_to_the_last_second(run_dir, *ran)


def test_a_guest_that_has_nowhere_to_write_its_results_says_so(tmp_path: Path) -> None:
    # With nopat no PCI device has a resource2_wc, as in a kernel without CONFIG_X86_PAT.
    ready = dataclasses.replace(guest(*SMALL), append="nopat")
    run_dir = tmp_path / "run"
    state, why = run_in_vm(run_dir, options(), ready=ready)
    assert state == "aborted"
    assert why.startswith("the guest was not set up: no /sys/bus/pci/devices/")
    assert why.endswith("(the kernel needs CONFIG_X86_PAT, and no nopat)")


def test_the_kernel_panics(tmp_path: Path) -> None:
    run_dir = tmp_path / "run"
    ran: list[float] = []

    def panic(machine: Machine, began: float) -> None:
        ran.append(time.monotonic() - began)
        machine.sysrq("c")

    state, why = run_in_vm(run_dir, options(*LONG), booted=WhenUnderWay(run_dir, 5, panic))
    assert state == "panicked"
    assert "sysrq triggered crash" in why
    assert "sysrq triggered crash" in (run_dir / "console.log").read_text(errors="replace")
    meta = json.loads((run_dir / "meta.json").read_text())
    assert 0 <= meta["host"]["busy_by_others"] <= 1
    assert_kept_to_the_last_second(run_dir, *ran)


@pytest.mark.parametrize(
    ("clock", "cpus"), [([], 2), pytest.param(COUNTED, 1, marks=pytest.mark.slow)]
)
def test_all_cpus_spin_with_interrupts_off(tmp_path: Path, clock: list[str], cpus: int) -> None:
    run_dir = tmp_path / "run"
    opts = dataclasses.replace(options(*LONG, *clock), hang_after=12)
    ran: list[float] = []
    on_disk: list[float] = []

    def spin(machine: Machine, began: float) -> None:
        ran.append(hang(machine, tmp_path, cpus) - began)
        on_disk.append(last_sample(run_dir))

    ready = guest(*SMALL, *clock)
    state, why = run_in_vm(run_dir, opts, ready=ready, booted=WhenUnderWay(run_dir, 5, spin))
    assert state == "hung"
    assert "sent nothing for" in why
    assert last_sample(run_dir) <= on_disk[0] + 1.0
    registers = (run_dir / "hang" / "registers.txt").read_text()
    assert registers.count(f"CPU#{cpus - 1}") == 2
    # Interrupts off: bit 9 of EFLAGS is clear on each CPU, in both readings.
    flags = [word for word in registers.split() if word.startswith("RFL=")]
    assert len(flags) == 2 * cpus
    assert all(int(flag.removeprefix("RFL="), 16) & 0x200 == 0 for flag in flags)
    said = (run_dir / "hang" / "console-evidence.log").read_text(errors="replace")
    assert "NMI" in said, said
    if not clock:  # the host's seconds
        assert_kept_to_the_last_second(run_dir, *ran)


def test_ctrl_c_and_a_second_run_beside_the_first(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with nothing_left(), command(*BY_COMMAND, "--label", "first", "--out", str(out)) as first:
        began = wait_for_start(out / "first" / "1", lambda: first.poll() is None)
        with command(*SMALL, "--out", str(tmp_path / "other")) as second:
            _, said = second.communicate(timeout=60)
        assert second.returncode == 3
        assert said.count("\n") == 1
        assert "another run is measuring on this machine: pid" in said
        assert not (tmp_path / "other").exists()
        time.sleep(5)
        workload_s = time.monotonic() - began
        os.killpg(first.pid, signal.SIGINT)
        printed, errors = first.communicate(timeout=60)
    assert first.returncode == 130, errors
    assert "Traceback" not in errors
    assert status(out / "first" / "1") == {
        "format": 1,
        "state": "aborted",
        "why": "interrupted by the user",
        "elapsed_s": None,
    }
    assert (out / "report" / "summary.txt").exists()
    assert "interrupted by the user" in printed
    assert_kept_to_the_last_second(out / "first" / "1", workload_s)


def test_the_runner_is_killed(tmp_path: Path) -> None:
    out = tmp_path / "out"
    before = machine_state()
    with command(*BY_COMMAND, "--label", "x", "--out", str(out)) as runner:
        began = wait_for_start(out / "x" / "1", lambda: runner.poll() is None)
        time.sleep(3)
        workload_s = time.monotonic() - began
        runner.kill()
        runner.wait()
    assert wait_for(lambda: processes() == [], 10), processes()
    after = machine_state()
    assert after["mounts"] == before["mounts"]
    assert not (out / "x" / "1" / "status.json").exists()
    assert last_sample(out / "x" / "1") >= workload_s - 1.5
    # The next run clears what the killed one could not.
    with command(*SMALL, "--kernel", "/dev/null", "--out", str(out)) as following:
        following.communicate(timeout=60)
    assert machine_state() == before


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small file system needs root")
def test_the_hosts_disk_is_full(tmp_path: Path) -> None:
    small = tmp_path / "small"
    small.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=96m", "tmpfs", str(small)], check=True)
    try:
        out = small / "out"
        with command(*BY_COMMAND, "--label", "x", "--out", str(out)) as runner:
            began = wait_for_start(out / "x" / "1", lambda: runner.poll() is None)
            time.sleep(3)
            workload_s = time.monotonic() - began
            with pytest.raises(OSError), open(small / "filler", "wb") as filler:
                while True:
                    filler.write(b"x" * 65536)
                    filler.flush()
            printed, errors = runner.communicate(timeout=60)
        assert runner.returncode == 3, errors
        assert "Traceback" not in errors
        assert status(out / "x" / "1")["state"] == "aborted"
        assert "the host's disk is full" in printed
        assert (out / "report" / "summary.txt").exists()
        assert_kept_to_the_last_second(out / "x" / "1", workload_s)
    finally:
        subprocess.run(["umount", str(small)], check=True)
    assert wait_for(lambda: processes() == [], 10)


def test_a_kernel_that_never_boots(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "BOOT_DEADLINE_S", 8.0)
    good = guest(*SMALL)
    image = bytearray(good.kernel.image.read_bytes())
    # The setup sectors stay: their code takes the CPU to protected mode, interrupts off, and jumps
    # to the first byte after them (a 64-bit loader: 0x200 further, where an `std` comes first).
    # A hlt with interrupts off is never left, and a jump leads back to it if an NMI did.
    begin = ((image[0x1F1] or 4) + 1) * 512
    length = len(image) - begin
    image[begin:] = (HLT_AND_AGAIN * (length // 3 + 1))[:length]
    broken = tmp_path / "bzImage"
    broken.write_bytes(image)
    kernel = dataclasses.replace(good.kernel, image=broken)
    run_dir = tmp_path / "run"
    state, why = run_in_vm(run_dir, options(), ready=dataclasses.replace(good, kernel=kernel))
    assert state == "hung", why
    assert "did not boot" in why
    assert status(run_dir) == {"format": 1, "state": "hung", "why": why, "elapsed_s": None}
    assert "HLT=1" in (run_dir / "hang" / "registers.txt").read_text()


def test_a_garbage_kernel_image(tmp_path: Path) -> None:
    garbage = tmp_path / "bzImage"
    garbage.write_bytes(os.urandom(100_000))
    with nothing_left(), command(*SMALL, "--kernel", str(garbage)) as runner:
        _, said = runner.communicate(timeout=60)
    assert runner.returncode == 3
    assert said.count("\n") == 1
    assert str(garbage) in said


def test_a_kernel_without_dm_crypt(tmp_path: Path) -> None:
    good = guest(*SMALL).kernel
    assert good.config is not None
    image = tmp_path / "vmlinuz-test"
    shutil.copy(good.image, image)
    config = good.config.read_text().replace("CONFIG_DM_CRYPT=m", "# CONFIG_DM_CRYPT is not set")
    (tmp_path / "config-test").write_text(config)
    spec = f"{image},modules={good.modules}"
    with nothing_left(), command(*SMALL, "--kernel", spec, "--out", str(tmp_path / "o")) as runner:
        _, said = runner.communicate(timeout=60)
    assert runner.returncode == 3, said
    assert said.count("\n") == 1
    assert "CONFIG_DM_CRYPT" in said
    assert not (tmp_path / "o").exists()
