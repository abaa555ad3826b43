# SPDX-License-Identifier: GPL-2.0-or-later
"""Facts about the machine under test for meta.json, read from its own /proc."""

import os
import re
import time
from pathlib import Path
from typing import Any

from contract.run_files import GUEST_PACKAGES
from setup import meminfo
from setup.devices.device import number_of, sys_folder


def facts() -> dict[str, Any]:
    """Kernel, command line, memory, CPUs, a clock anchor, packages added to a guest's image.

    Facts that cannot be read are left out.
    """
    uname = os.uname()
    known: dict[str, Any] = {
        "kernel": {"release": uname.release, "version": uname.version},
        "cmdline": _text("/proc/cmdline").strip(),
        "cpus": os.cpu_count(),
        "anchor": {"monotonic_s": time.monotonic(), "realtime_s": time.time()},
    }
    total = meminfo.in_bytes()
    if total is not None:
        known["mem_total_kib"] = total >> 10
    model = re.search(r"model name\s*:\s*(.+)", _text("/proc/cpuinfo"))
    if model:
        known["cpu_model"] = model[1].strip()
    if packages := _text(GUEST_PACKAGES):
        known["packages"] = dict(line.split() for line in packages.splitlines())
    return known


def counter(name: str) -> int | None:
    """The count of a /proc/vmstat row; None if this kernel has no row of that name."""
    match = re.search(rf"^{re.escape(name)} (\d+)$", _text("/proc/vmstat"), re.MULTILINE)
    return int(match[1]) if match else None


def block_name(device: str) -> str:
    """The kernel's name (`vdb`, `dm-2`, `loop0`) of a block device."""
    return sys_folder(number_of(Path(device).stat())).name


def disk_of_serial(serial: str) -> str | None:
    """The kernel's name of the disk with that serial (/sys/block/*/serial); None if none has it."""
    for path in Path("/sys/block").glob("*/serial"):
        if _text(str(path)).strip() == serial:
            return path.parent.name
    return None


def _text(path: str) -> str:
    try:
        return Path(path).read_text(errors="replace")
    except OSError:
        return ""
