# SPDX-License-Identifier: GPL-2.0-or-later
"""Whether KVM works here: found out once by booting a real kernel to user space under a deadline.

An openable /dev/kvm proves nothing: nested without hardware help it may create a VM, run a boot
sector, and never bring a real kernel to its first line.
"""

import json
import os
import platform
import time
from pathlib import Path

from errors import UserError
from setup import cache
from vm.emulator import Emulator
from vm.machine import DidNotStart, running
from vm.qemu import Spec

SCRATCH = "probe"  # the kind of folder in the cache that it has
NOT_OURS = "/dev/kvm is missing or not ours to open"
MARK = b"DESKTOP-FREEZE-PROBE"
# Within which a kernel has to boot; a slow host, itself a guest, takes longer, and may if KVM was
# asked for.
DEADLINE_S, PATIENT_S = 20.0, 120.0
# A verdict that KVM does not work is older at the most; an update of the host may have changed it.
ASKED_AGAIN_S = 24 * 3600


def boots(
    emulator: Emulator, accel: str, kernel: Path, initrd: Path, within_s: float = DEADLINE_S
) -> bool:
    """Whether this kernel reaches user space under this accelerator within so many seconds."""
    with cache.scratch(SCRATCH) as folder:
        log = folder / "console.log"
        spec = Spec(
            emulator=emulator,
            accel=accel,
            kernel=kernel,
            initrd=initrd,
            append="console=ttyS0 panic=-1 quiet probe=1",
            memory=256 << 20,
            cpus=1,
            console_log=log,
        )
        end = time.monotonic() + within_s
        with running(spec, folder) as machine:
            while time.monotonic() < end:
                alive = machine.alive
                if log.exists() and MARK in log.read_bytes():
                    return True
                if not alive:
                    return False
                time.sleep(0.1)
    return False


def choose(emulator: Emulator, asked: str, kernel: Path, initrd: Path) -> tuple[str, str]:
    """The accelerator to use (`kvm` or `tcg`) and why, in one line. asked: auto or kvm."""
    if asked == "kvm":
        check_device()
    if not _may_open():
        return "tcg", NOT_OURS
    works, reason = _verdict(emulator, kernel, initrd, patient=asked == "kvm")
    if not works and asked == "kvm":
        raise _no_kvm(reason)
    return "kvm" if works else "tcg", reason


def cpu_model() -> str:
    """What /proc/cpuinfo says of this machine's CPUs: a verdict holds for these."""
    return "".join(
        line for line in Path("/proc/cpuinfo").read_text().splitlines() if "model name" in line
    )


def check_device() -> None:
    """UserError if this user has no /dev/kvm."""
    if not _may_open():
        raise _no_kvm(NOT_OURS)


def _may_open() -> bool:
    return os.access("/dev/kvm", os.R_OK | os.W_OK)


def _no_kvm(reason: str) -> UserError:
    return UserError(f"KVM does not work here: {reason}", hint="use --accel tcg")


def under_kvm(
    emulator: Emulator, kernel: Path, initrd: Path, within_s: float = DEADLINE_S
) -> tuple[bool, str]:
    """Whether KVM works and why, in one line."""
    try:
        if boots(emulator, "kvm", kernel, initrd, within_s):
            return True, "a kernel booted to user space under KVM"
    except DidNotStart as error:
        return False, f"/dev/kvm opens, but {Exception.__str__(error)}"
    return False, f"/dev/kvm opens, but no kernel reached user space in {within_s:.0f} s"


def _verdict(emulator: Emulator, kernel: Path, initrd: Path, *, patient: bool) -> tuple[bool, str]:
    """Whether KVM works and why; a `no` is asked again after a day, and by who is patient."""
    max_age_s, within_s = (0, PATIENT_S) if patient else (ASKED_AGAIN_S, DEADLINE_S)
    host = platform.release(), cpu_model()
    name = cache.key("2", *host, emulator.origin, emulator.version) + ".json"
    known = cache.root() / "probe" / name
    # Of the future: the clock was set back meanwhile.
    old = known.exists() and not 0 <= time.time() - known.stat().st_mtime < max_age_s

    def build(path: Path) -> None:
        works, why = under_kvm(emulator, kernel, initrd, within_s)
        if not works and not boots(emulator, "tcg", kernel, initrd, within_s):
            raise UserError(f"{kernel} reaches user space neither under KVM nor emulated")
        path.write_text(json.dumps({"kvm": works, "why": why}))

    found = json.loads(cache.built("probe", name, build).read_text())
    if old and not found["kvm"]:
        known.unlink(missing_ok=True)
        found = json.loads(cache.built("probe", name, build).read_text())
    return bool(found["kvm"]), str(found["why"])
