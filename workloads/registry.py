# SPDX-License-Identifier: GPL-2.0-or-later
"""Finds the workloads: every module of this package that has a WORKLOAD."""

import functools
import importlib
import pkgutil
from collections.abc import Mapping
from dataclasses import replace

import workloads
from contract.command_line import usual
from contract.options import Options
from errors import Exit, UserError
from workloads import companions
from workloads.workload import SCREEN_PACKAGES, Workload


@functools.cache
def every() -> Mapping[str, Workload]:
    """All workloads by name."""
    by_name = {}
    for module in pkgutil.iter_modules(workloads.__path__):
        workload = getattr(importlib.import_module(f"workloads.{module.name}"), "WORKLOAD", None)
        if isinstance(workload, Workload):
            by_name[workload.name] = workload
    return by_name


def find(name: str) -> Workload:
    """The workload; UserError (2) with the list of names if the name is unknown."""
    if name not in every():
        has = ", ".join(sorted(every()))
        raise UserError(f"unknown workload {name!r}", hint=f"choose from {has}", status=Exit.USAGE)
    return every()[name]


def with_gitks() -> dict[str, str]:
    """The workloads that include the desktop's gitk's, and the kind of these."""
    return {name: workload.gitks for name, workload in every().items() if workload.gitks}


def resolved(options: Options, *, memory_given: bool = True) -> Options:
    """The options with all parameters of their workload; UserError (2) if they are invalid."""
    chosen = find(options.workload)
    if chosen.more_disks and options.device and not options.bare:
        raise UserError(
            f"--workload {chosen.name} needs {chosen.more_disks} further disks: only a VM has them",
            hint="leave --device out",
            status=Exit.USAGE,
        )
    fixed = memory_given or options.device
    memory = options.memory if fixed else chosen.memory_of(options.memory, options.screen)
    load = chosen.completed(options.load, options.profile)
    complete = replace(options, load=load, memory=memory)
    chosen.check(complete)
    return complete


def memory_unless_given(options: Options) -> int:
    """Bytes of its VM's memory without --memory."""
    usual_memory = usual({"profile": options.profile, "machine": options.machine})["memory"]
    return find(options.workload).memory_of(usual_memory, options.screen)


def disk_bytes(options: Options) -> int:
    """The bytes that the disks of its VM will hold beside what every workload writes."""
    return find(options.workload).more_bytes(options)


def packages(name: str, screen: bool = False) -> tuple[str, ...]:
    """The Debian packages that its guest needs beside the usual ones.

    They are none, or those of all workloads and --screen together, so that one further image serves
    all.
    """
    if not (find(name).packages or screen):
        return ()
    of_workloads = {package for workload in every().values() for package in workload.packages}
    return tuple(sorted(of_workloads | {*SCREEN_PACKAGES}))


def progress_streams(options: Options) -> tuple[str, ...]:
    """The streams whose lines show that a run makes progress: those that end, and the subjects."""
    chosen = find(options.workload)
    progressing = chosen.finite(options) | set(chosen.describe(options).subjects)
    return tuple(name for name in stream_names(options) if name in progressing)


def stream_names(options: Options) -> list[str]:
    """All streams of a run, in the order in which they start."""
    return [*companions.names(options), *find(options.workload).streams(options)]
