# SPDX-License-Identifier: GPL-2.0-or-later
"""Finds out whether KVM works here, by booting a real kernel to user space within a deadline.

That /dev/kvm opens proves nothing: a nested KVM without hardware support may create a VM, run a
boot sector, and still never bring a real kernel to its first line.
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

SCRATCH = "probe"  # the kind of its scratch folder in the cache
NOT_OURS = "/dev/kvm is missing, or this user may not open it"
MARK = b"DESKTOP-FREEZE-PROBE"
# Limits for the boot. A slow host that is itself a guest needs longer: it gets the second one if
# --accel kvm is given.
DEADLINE_S, PATIENT_S = 20.0, 120.0
# The verdict that KVM does not work expires: an update of the host may have changed it.
EXPIRES_S = 24 * 3600


def boots(
    emulator: Emulator, accel: str, kernel: Path, initrd: Path, within_s: float = DEADLINE_S
) -> bool:
    """Whether this kernel reaches user space under this accelerator within within_s seconds."""
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


def choose(emulator: Emulator, wanted: str, kernel: Path, initrd: Path) -> tuple[str, str]:
    """The accelerator to use (`kvm` or `tcg`), and one line with the reason.

    wanted: auto or kvm.
    """
    if wanted == "kvm":
        check_device()
    if not _may_open():
        return "tcg", NOT_OURS
    works, reason = _verdict(emulator, kernel, initrd, patient=wanted == "kvm")
    if not works and wanted == "kvm":
        raise _no_kvm(reason)
    return "kvm" if works else "tcg", reason


def cpu_model() -> str:
    """The model names of this machine's CPUs (/proc/cpuinfo), for which a verdict holds."""
    return "".join(
        line for line in Path("/proc/cpuinfo").read_text().splitlines() if "model name" in line
    )


def check_device() -> None:
    """UserError if this user cannot open /dev/kvm."""
    if not _may_open():
        raise _no_kvm(NOT_OURS)


def _may_open() -> bool:
    return os.access("/dev/kvm", os.R_OK | os.W_OK)


def _no_kvm(reason: str) -> UserError:
    return UserError(f"KVM does not work here: {reason}", hint="use --accel tcg")


def under_kvm(
    emulator: Emulator, kernel: Path, initrd: Path, within_s: float = DEADLINE_S
) -> tuple[bool, str]:
    """Whether KVM works, and one line with the reason."""
    try:
        if boots(emulator, "kvm", kernel, initrd, within_s):
            return True, "a kernel booted to user space under KVM"
    except DidNotStart as error:
        return False, f"/dev/kvm opens, but {Exception.__str__(error)}"
    return False, f"/dev/kvm opens, but no kernel reached user space in {within_s:.0f} s"


def _verdict(emulator: Emulator, kernel: Path, initrd: Path, *, patient: bool) -> tuple[bool, str]:
    """Whether KVM works, and why. A `no` is tested again after EXPIRES_S seconds, or if patient."""
    max_age_s, within_s = (0, PATIENT_S) if patient else (EXPIRES_S, DEADLINE_S)
    host = platform.release(), cpu_model()
    name = cache.key("2", *host, emulator.origin, emulator.version) + ".json"
    known = cache.root() / "probe" / name
    # A time in the future: the clock was set back meanwhile.
    old = known.exists() and not 0 <= time.time() - known.stat().st_mtime < max_age_s

    def build(path: Path) -> None:
        works, why = under_kvm(emulator, kernel, initrd, within_s)
        if not works and not boots(emulator, "tcg", kernel, initrd, within_s):
            raise UserError(f"{kernel} reaches user space neither under KVM nor emulated")
        path.write_text(json.dumps({"kvm": works, "why": why}))

    verdict = json.loads(cache.built("probe", name, build).read_text())
    if old and not verdict["kvm"]:
        known.unlink(missing_ok=True)
        verdict = json.loads(cache.built("probe", name, build).read_text())
    return bool(verdict["kvm"]), str(verdict["why"])
