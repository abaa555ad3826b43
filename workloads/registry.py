# SPDX-License-Identifier: GPL-2.0-or-later
"""The workloads there are: each module of this package that has a WORKLOAD."""

import functools
import importlib
import pkgutil
from collections.abc import Mapping
from dataclasses import replace

import workloads
from contract.options import Options
from errors import Exit, UserError
from workloads import beside
from workloads.workload import Workload


@functools.cache
def every() -> Mapping[str, Workload]:
    """By name."""
    found = {}
    for module in pkgutil.iter_modules(workloads.__path__):
        one = getattr(importlib.import_module(f"workloads.{module.name}"), "WORKLOAD", None)
        if isinstance(one, Workload):
            found[one.name] = one
    return found


def find(name: str) -> Workload:
    """The workload; UserError (2) with the list if there is none of that name."""
    if name not in every():
        has = ", ".join(sorted(every()))
        raise UserError(f"no workload {name!r}", hint=f"there are {has}", status=Exit.USAGE)
    return every()[name]


def with_gitks() -> frozenset[str]:
    """The names of the workloads that the desktop's gitk's are part of."""
    return frozenset(name for name, one in every().items() if one.gitks)


def resolved(options: Options, *, memory_said: bool = True) -> Options:
    """The options with all parameters of their workload; UserError (2) if they will not do."""
    chosen = find(options.workload)
    if chosen.more_disks and options.device and not options.bare:
        raise UserError(
            f"--workload {chosen.name} needs {chosen.more_disks} disks of a VM's own",
            hint="leave --device out",
            status=Exit.USAGE,
        )
    said = memory_said or options.device
    memory = options.memory if said else chosen.memory_of(options.memory)
    load = chosen.completed(options.load, options.profile)
    found = replace(options, load=load, memory=memory)
    chosen.check(found)
    return found


def disk_bytes(options: Options) -> int:
    """What the disks of its VM come to hold beside what every workload writes."""
    return find(options.workload).more_bytes(options)


def packages(name: str) -> tuple[str, ...]:
    """Debian's, beside those that every guest has: none, or what all the workloads need.

    One image serves them all, so that it is built once.
    """
    if not find(name).packages:
        return ()
    return tuple(sorted({package for one in every().values() for package in one.packages}))


def progress_streams(options: Options) -> tuple[str, ...]:
    """Of which a line says that a run goes on: what should end, and what is measured."""
    chosen = find(options.workload)
    there = chosen.finite(options) | set(chosen.describe(options).subjects)
    return tuple(name for name in stream_names(options) if name in there)


def stream_names(options: Options) -> list[str]:
    """All streams of a run, in the order in which they start."""
    return [*beside.names(options), *find(options.workload).streams(options)]
