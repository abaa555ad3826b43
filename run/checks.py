# SPDX-License-Identifier: GPL-2.0-or-later
"""Checks what a command names before anything is fetched or made; a dry run does so, too.

A UserError has the message and the status that the run would end with. Nothing is written.
"""

import os
import re
from pathlib import Path

from contract.options import Options
from contract.variant import Variant
from errors import Exit, UserError
from run import clock
from run.campaign import Campaign
from run.run_folders import folder
from setup import cache, history, kconfig, kernels, mirrors
from setup.crypt_lvm import activation, ownership, stack
from setup.devices.check import check_device, refuse_other_name
from setup.kernels import Kernel
from setup.trees import specs
from vm import emulator, probe, room
from workloads import registry

CACHES = "XDG_CACHE_HOME=DIR"  # the way to move the cache
SERIES = re.compile(r"\d+\.\d+")


def check(options: Options, *, elsewhere: bool = False) -> None:
    """UserError if something that the options name cannot be used; paths must be absolute.

    elsewhere: runs are done on other machines, so that this machine's KVM does not matter.
    """
    if options.mirror is not None:
        mirrors.find(options.mirror)
    if options.gitks and options.repo:
        history.use(Path(options.repo))
    music_folder(options)
    _check_results(folder(options))
    if options.device is not None:
        _check_device(options.device, options.destroy_data)
        return
    opened = Campaign(options, ())
    _check_baseline(options, opened.stored())
    for variant in options.variants:
        _check_kernel(options.of(variant), variant, opened.pinned(variant))
    if options.accel == "kvm" and not elsewhere:
        probe.check_device()
    if options.qemu != emulator.SUITE:
        emulator.find(options.qemu)
    check_rooms(options, clock.at_once(options, clock.expected_clock(options)))


def check_rooms(options: Options, jobs: int) -> None:
    """UserError if the cache's disk has no room for the disks of `jobs` guests at once."""
    size = clock.disk_bytes(options)
    room.check_space(cache.place(), size, "the VM's throw-away disks", CACHES)
    room.check_space(cache.place(), jobs * size, f"a run's disks, {jobs} at once", CACHES)


def music_folder(options: Options) -> Path | None:
    """The user's own music folder; None if the music is generated or on another machine."""
    if options.music is None or options.music.startswith("rsync://"):
        return None
    music = Path(options.music)
    if not music.is_dir():
        raise UserError(f"--music {options.music}: no such folder")
    return music.resolve()


def _check_results(place: Path) -> None:
    place = place.resolve()
    nearest = next(path for path in (place, *place.parents) if path.exists())
    if not nearest.is_dir() or not os.access(nearest, os.W_OK | os.X_OK):
        why = "may not be written to" if nearest.is_dir() else "is no folder"
        raise UserError(
            f"cannot write results: {nearest} {why}", hint="give a writable folder: --out"
        )
    room.check_space(place, room.RESULT_BYTES, "a result", "--out DIR")


def _check_device(device: str, destroy_data: str | None) -> None:
    refuse_other_name(device, destroy_data)
    ownership.refuse_others(device)
    if stack.load_state(device):
        return  # left by a run that died; it is taken down first
    activation.check_mount()
    check_device(device, destroy_data=destroy_data)


def _check_kernel(options: Options, variant: Variant, spec: str) -> None:
    kernel = kernels.as_it_is(spec)
    if kernel is not None and not kconfig.remedy_lacks(kernel, variant):  # else it is left out
        check_config(options, variant, kernel)


def check_config(options: Options, variant: Variant, kernel: Kernel) -> None:
    """UserError if the kernel's configuration lacks something; options: those of the variant."""
    kconfig.check(
        kernel,
        options.fs,
        options.crypt,
        variant.swap,
        workload=options.workload,
        needs=registry.find(options.workload).config,
    )


def _check_baseline(options: Options, stored: list[Variant]) -> None:
    """UserError if --baseline names no variant, nor a label that a variant may still get."""
    asked = options.baseline
    if asked is None or any(asked in (known.label, known.kernel) for known in stored):
        return
    for variant in options.variants:
        if asked in (variant.label, variant.kernel) or _may_become(variant, asked):
            return
    names = [known.label or known.kernel for known in (*stored, *options.variants)]
    raise UserError(
        f"--baseline {asked}: no such variant",
        hint=f"there are {', '.join(dict.fromkeys(names))}",
        status=Exit.USAGE,
    )


def _may_become(variant: Variant, label: str) -> bool:
    """Whether a variant without a label may get this label from its kernel's version."""
    if specs.is_tree(variant.kernel) and not variant.label:
        return True
    series = SERIES.match(label)
    if variant.label or series is None:
        return False
    wanted = SERIES.match(variant.kernel.removeprefix("debian:"))
    return wanted is None or wanted[0] == series[0]
