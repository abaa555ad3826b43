# SPDX-License-Identifier: GPL-2.0-or-later
"""QEMU's command line and monitor client."""

import dataclasses
import os
import re
import signal
import subprocess
from pathlib import Path

import pytest

from tests.support.kernel_logs import wait_for
from vm import host, probe
from vm.disk_spec import DiskModel
from vm.emulator import Emulator
from vm.qemu import Disk, Spec, command_line

QEMU = Emulator("/qemu", "7.2")
SPEC = Spec(
    emulator=QEMU,
    accel="tcg",
    kernel=Path("/k"),
    initrd=Path("/i"),
    append="console=ttyS0",
    memory=512 << 20,
    cpus=2,
    console_log=Path("/a,b/console.log"),
    console=Path("/c"),
    monitor_fd=8,
    disks=[Disk("work", "/dev/fdset/1", iops=150, bps=80 << 20)],
    results=Path("/r,s/memory"),
    music_command="rsync --daemon --config=/x,y",
)


def test_exactly_one_accelerator_and_no_port() -> None:
    for accel in ("tcg", "kvm"):
        argv = command_line(dataclasses.replace(SPEC, accel=accel))
        assert argv.count("-accel") == 1
        assert "kvm:tcg" not in " ".join(argv)
        assert "hostfwd" not in " ".join(argv)
        assert "restrict=on" in " ".join(argv)
        assert argv[:3] == ["setpriv", "--pdeathsig", "KILL"]


def test_commas_and_throttles() -> None:
    text = " ".join(command_line(SPEC))
    assert "logfile=/a,,b/console.log" in text
    assert "--config=/x,,y" in text
    assert "throttling.iops-total=150,throttling.bps-total=83886080" in text


def test_a_clock_of_instructions_and_a_modelled_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = tmp_path / "disk"
    disk.touch()
    model = DiskModel(True, 57, 58_000_000, 1, 33, 2)
    with open(disk, "rb") as opened:
        spec = dataclasses.replace(
            SPEC,
            cpus=1,
            mips=250,
            seed=7,
            library=Path("/lib,x.so"),
            disks=[
                Disk("root", "/root"),
                Disk("work", "/dev/fdset/1", model=model, descriptor=opened.fileno()),
            ],
        )
        monkeypatch.setenv("LD_PRELOAD", "/users.so")
        environment = spec.environment
        on_the_hosts = dataclasses.replace(spec, mips=None).environment
    text = " ".join(command_line(spec))
    assert "-accel tcg,thread=single" in text and "-seed 7" in text
    assert "-icount shift=2,sleep=off,align=off -rtc base=2009-11-02T12:00:00,clock=vm" in text
    assert text.count("aio=io_uring") == 2 and "throttling" not in text
    assert text.count("ioeventfd=off") == len(re.findall("-device virtio-", text)) == 3
    assert text.count("write-cache=off,discard=off,write-zeroes=off") == 2
    assert "num-queues=2,queue-size=64,seg-max-adjust=off" in text
    assert (
        environment["LD_PRELOAD"] == "/lib,x.so:/users.so"
        and f" {disk.stat().st_ino} " in (environment["DISK_MODEL"])
    )
    assert environment["DISK_MODEL_OWN_CLOCK"] == "1"
    assert "DISK_MODEL_OWN_CLOCK" not in on_the_hosts
    plain = " ".join(command_line(SPEC))
    assert (
        "write-cache" not in plain
        and "icount" not in plain
        and "io_uring" not in plain
        and "DISK_MODEL" not in SPEC.environment
    )


def test_results_have_no_port_of_a_driver() -> None:
    argv = command_line(SPEC)
    assert "ivshmem-plain,memdev=results" in argv
    assert any(word.endswith("mem-path=/r,,s/memory") and "share=on" in word for word in argv)
    assert not [word for word in argv if "virtio-serial" in word or "virtserialport" in word]


def test_a_qemu_that_dies_under_kvm_means_no_kvm(tmp_path: Path) -> None:
    """Seen: `kvm_buf_set_msrs: Assertion … failed` where a hypervisor's KVM lacks an MSR."""
    broken = tmp_path / "qemu"
    broken.write_text("#!/bin/sh\necho 'kvm.c:3183: Assertion failed.' >&2\nexit 134\n")
    broken.chmod(0o755)
    qemu = Emulator(str(broken), "0")
    works, why = probe.under_kvm(qemu, Path("/none"), Path("/none"))
    assert not works
    assert why == "/dev/kvm opens, but QEMU did not start: kvm.c:3183: Assertion failed."


def test_what_others_take_of_the_host_is_seen() -> None:
    others = host.Others()
    # Not waited for by us: its time is not our children's.
    spin = "(ulimit -t 20; while :; do :; done) >/dev/null 2>&1 & echo $!"
    started = subprocess.run(["setsid", "sh", "-c", spin], check=True, capture_output=True)
    try:
        enough = 0.4 / (os.cpu_count() or 1)
        assert wait_for(lambda: (share := others.share() or 0) > enough and share) <= 1
    finally:
        os.kill(int(started.stdout), signal.SIGTERM)


def test_our_own_children_are_no_others(monkeypatch: pytest.MonkeyPatch) -> None:
    # /proc/stat as of a machine on which nobody but our child did anything.
    busy = iter([(10.0, 100.0), (11.0, 102.0)])
    monkeypatch.setattr(host, "_host", lambda: next(busy))
    others = host.Others()
    # A second of CPU time, however long it takes.
    done = subprocess.run(["sh", "-c", "ulimit -t 1; while :; do :; done"], check=False)
    assert done.returncode in (-signal.SIGXCPU, -signal.SIGKILL)
    share = others.share()
    assert share is not None and share < 0.45
