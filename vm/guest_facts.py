# SPDX-License-Identifier: GPL-2.0-or-later
"""Facts about a guest for meta.json that only its host knows."""

from typing import Any

from setup import cache, kconfig
from setup.kernels import Kernel
from setup.userland import tools
from vm.guest import Guest, GuestJob
from vm.host import cpu_model
from vm.qemu import CACHE, CPU, GUEST, MACHINE
from vm.room import WORK_DISK_BYTES


def host_facts(guest: Guest) -> dict[str, Any]:
    """The facts for meta.json that depend on the host, its QEMU and what it lacks."""
    return {
        "accelerator": guest.accel,
        "accelerator_reason": guest.accel_reason,
        "clock": {"kind": guest.timing.clock, "why": guest.timing.why},
        "machine": {
            "name": guest.hardware.machine,
            "changed": list(guest.hardware.changed),
            "qemu": guest.emulator.version,
            "qemu_of": guest.emulator.origin,
            "tools": tools.identity(),
            "type": MACHINE,
            "cpu": CPU[guest.accel],
            **({"mips": guest.hardware.mips} if guest.timing.clock == GUEST else {}),
        },
        "disk": _disk_facts(guest),
        "host": {"cpu_model": cpu_model()},
        "guest": _contents(guest),
    }


def _disk_facts(guest: Guest) -> dict[str, Any]:
    of_disk: dict[str, Any] = {"model": "virtio-blk, sparse file"}
    if guest.timing.disk is not None:
        of_disk = {
            "model": "virtio-blk, a model of a disk (docs/explain/machines-and-clocks.md)",
            "kind": "rotating" if guest.timing.disk.rotates else "flash",
            "parallel": guest.timing.disk.parallel,
            "depth": guest.timing.disk.depth,
            "queues": guest.timing.disk.queues,
        }
    return {
        "size_bytes": WORK_DISK_BYTES,
        "cache": CACHE,
        "iops": guest.hardware.disk_iops,
        "bps": guest.hardware.disk_bps,
        **of_disk,
        **({"more": guest.hardware.more_disks} if guest.hardware.more_disks else {}),
    }


def outside_facts(guest: Guest, guest_job: GuestJob) -> dict[str, Any]:
    """All facts about the machine and its kernel that only the host knows."""
    kernel = guest.kernel
    return {
        **host_facts(guest),
        "guest": _contents(guest),
        "kernel": {
            "spec": kernel.spec,
            "image_digest": kernel.image_digest,
            "config_digest": kernel.config_digest,
            **({"unwinder": "guess"} if _guesses_stacks(kernel) else {}),
        },
        "append": guest.append,
        **({"seed": guest_job.seed} if guest.timing.clock == GUEST else {}),
    }


def _contents(guest: Guest) -> dict[str, str]:
    """The digests of the guest's image and of its part of the suite."""
    files = guest.files
    return {"image": cache.digest(files.root_image), "suite": cache.tree_digest(files.suite)}


def _guesses_stacks(kernel: Kernel) -> bool:
    return kernel.config is not None and kconfig.guesses_stacks(kernel.config)
