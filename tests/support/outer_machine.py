# SPDX-License-Identifier: GPL-2.0-or-later
"""An emulated AMD machine with KVM: Debian's kernel, a fresh Debian as its root, /dev/kvm in it.

QEMU emulates SVM, so that KVM's whole path runs where there is no KVM. It says nothing of speed.
"""

import os
import re
import shutil
import subprocess
from pathlib import Path

from setup import apt, disk, initramfs, kernels
from tests.support import fresh_host
from tests.support.vms import FAULT, EmulatorFailed, last_words
from vm import emulator

SUITE = Path(__file__).resolve().parents[2]
KERNEL = "debian:6.1/amd64"  # of the cloud's kernels none has kvm_amd
INIT = SUITE / "tests" / "guest" / "outer_machine.sh"
MEMORY_MIB = 4096
FREE = 3 << 30  # for what the command in it writes
RESULTS = 256 << 20
ENDED = re.compile(r"^OUTER-MACHINE the command ended with status (\d+)", re.MULTILINE)


def run(root: Path, command: str, folder: Path, within_s: float) -> Path:
    """Run a shell command in a machine whose root file system is a copy of root.

    What it left in /results is below the folder that is returned; the console is in folder.
    EmulatorFailed if that machine's kernel died; AssertionError if the command failed.
    """
    kernel = kernels.resolve(KERNEL)
    initrd = initramfs.build(kernel, crypt=False, more=("kvm_amd",))
    disks = {"root": folder / "root.ext4", "job": folder / "job.ext4", "results": folder / "tar"}
    _root_disk(root, disks["root"])
    _job_disk(command, folder, disks["job"])
    disks["results"].touch()
    os.truncate(disks["results"], RESULTS)
    console = folder / "console.log"
    qemu = emulator.find()
    argv = [*qemu.command(), "-nodefaults", "-no-user-config"]
    argv += ["-machine", "q35", "-accel", "tcg,thread=multi", "-cpu", "EPYC,+svm,+npt"]
    argv += ["-smp", "2", "-m", str(MEMORY_MIB), "-display", "none", "-no-reboot"]
    argv += ["-kernel", str(kernel.image), "-initrd", str(initrd)]
    argv += ["-append", "console=ttyS0 panic=-1 tsc=reliable"]
    argv += ["-serial", f"file:{console}", "-device", "virtio-rng-pci"]
    for serial, file in disks.items():
        argv += ["-drive", f"file={file},format=raw,if=none,id={serial},cache=unsafe"]
        argv += ["-device", f"virtio-blk-pci,drive={serial},serial={serial}"]
    environment = [f"{name}={value}" for name, value in qemu.environment().items()]
    try:
        with fresh_host.started(["env", *environment, *argv]) as process:
            printed, _ = process.communicate(timeout=within_s)
    except subprocess.TimeoutExpired:
        raise AssertionError(f"not done after {within_s:.0f} s:\n{last_words(folder)}") from None
    finally:
        disks["root"].unlink()
    assert process.returncode == 0, printed
    said = console.read_text(errors="replace")
    if fault := FAULT.search(said):
        raise EmulatorFailed(said[fault.start() :][:4000])
    ended = ENDED.search(said)
    assert ended and ended[1] == "0", last_words(folder)
    results = folder / "results"
    results.mkdir()
    subprocess.run(["tar", "-xf", disks["results"], "-C", results, "--no-same-owner"], check=True)
    return results


def _root_disk(root: Path, image: Path) -> None:
    (root / "job").mkdir(exist_ok=True)
    used = subprocess.run(
        ["du", "-s", "--block-size=1", root], capture_output=True, text=True, check=True
    ).stdout.split()[0]
    with open(image, "wb") as file:
        file.truncate((int(used) * 5 // 4 + FREE) >> 20 << 20)
    make = ["mke2fs", "-q", "-F", "-t", "ext4", "-m", "0", "-E", "lazy_itable_init=1"]
    apt.run([*make, "-d", root, image], what="making the outer machine's disk")


def _job_disk(command: str, folder: Path, image: Path) -> None:
    job = folder / "job"
    (job / "vm").mkdir(parents=True)
    shutil.copy(INIT, job / "vm" / "guest_init.sh")
    (job / "command").write_text(command)
    disk.pack({"suite": job, "run": job}, image, "job")
