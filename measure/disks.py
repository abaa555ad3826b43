# SPDX-License-Identifier: GPL-2.0-or-later
"""The block devices of a run: what is recorded of them, and what meta.json says of the stack."""

from typing import Any

from contract import run_files
from contract.options import Options
from errors import UserError
from measure import machine_facts, swap_facts
from setup.crypt_lvm.stack import Stack
from setup.devices.check import check_device
from workloads.workload import Workload


def stack_facts(stack: Stack, options: Options) -> dict[str, Any]:
    return {
        "swap": swap_facts.swap_in_use(stack, options.variants[0].swap),
        "crypt": "aes-xts-plain64, 512-bit key" if options.crypt else "none",
        "fs": stack.fs,
    }


def watched(stack: Stack) -> dict[str, str]:
    """The watched block devices: column prefix in diskstats.tsv -> the kernel's name."""
    parts = {"disk": stack.disk, "fs": stack.fs_device}
    if stack.swapped_to:
        parts["swap"] = stack.swapped_to
    if stack.crypt is not None:
        parts["crypt"] = stack.crypt
    return {prefix: machine_facts.block_name(path) for prefix, path in parts.items()}


def more_disks(chosen: Workload) -> dict[str, str]:
    """The kernel's names of the workload's further disks, by their serials."""
    names = {}
    for serial in run_files.more_disks(chosen.more_disks):
        name = machine_facts.disk_of_serial(serial)
        if name is None:
            raise UserError(f"--workload {chosen.name} needs a disk with the serial {serial}")
        # A disk of the user may have the same serial.
        check_device(f"/dev/{name}", destroy_data=None)
        names[serial] = name
    return names
