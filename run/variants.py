# SPDX-License-Identifier: GPL-2.0-or-later
"""The variants of a command line and its plans, each with its workload's load and memory."""

import argparse
from collections.abc import Iterable, Sequence
from dataclasses import replace

from contract import command_line, remedy
from contract.command_line import Parser, running
from contract.option_table import ROWS
from contract.options import Options, flag
from contract.remedy import Remedy
from contract.swap import NONE, ON_DISK, Swap
from contract.values import Refused
from contract.variant import Variant
from errors import Exit, UserError
from run.changed_kernels import change_options
from workloads.registry import find


def check_variants(parser: Parser, given: argparse.Namespace) -> None:
    """A usage error for what a command line says of its variants and cannot be."""
    what = ("kernel", "label", "append", "swap", "knob", "remedy", "remedies")
    own = [name for name in what if getattr(given, name)]
    if option := change_options.without_kernel(given):
        parser.error(f"{option} needs a --kernel git:PATH@REV or debian-source:VERSION")
    if given.plan is not None and own:
        parser.error(f"{flag(own[0])} does not go with --plan: write it there")
    if given.resume is not None and own and not given.kernel:
        parser.error(f"{flag(own[0])} needs the --kernel that it is for")
    for name, each in (("swap", given.swap or []), ("remedy", given.remedy or [])):
        if len(set(each)) < len(each):
            parser.error(f"a {name} is given twice: {max(each, key=each.count)}")
    if given.remedy and given.remedies:
        parser.error("--remedies are all of them: leave --remedy out")
    _remedies(parser, given)


def _remedies(parser: Parser, given: argparse.Namespace) -> list[Remedy]:
    """Those that are asked for; a usage error for one that there is not, or that is damaged."""
    try:
        return [
            remedy.find(name) for name in (remedy.named() if given.remedies else given.remedy or ())
        ]
    except Refused as error:
        parser.error(str(error))


def said_variants(parser: Parser, given: argparse.Namespace) -> list[Variant]:
    """Those of the command line; none if another plan says which there are."""
    kernels = change_options.kernels(given)
    swaps = given.swap or [ON_DISK]
    each = [one for kernel in kernels for one in _beside(parser, given, kernel, swaps)]
    labels = given.label or [""] * len(each)
    if len(labels) != len(each):
        of = f"{len(kernels)} {'kernels' if given.changes else '--kernel'}"
        of += f" with {len(swaps)} --swap" if len(swaps) > 1 else ""
        of += f", {len(each)} variants with the remedies" if given.remedy or given.remedies else ""
        parser.error(f"{len(labels)} --label for {of}: as many, or none")
    if given.device is not None:
        alone = running(command_line.given(given))
        return [one.applied(alone) for one in _remedies(parser, given)] or [alone]
    if given.plan is not None or (given.resume is not None and not given.kernel):
        return []
    return [replace(one, label=label) for one, label in zip(each, labels, strict=True)]


def _beside(
    parser: Parser, given: argparse.Namespace, kernel: str, swaps: Sequence[Swap]
) -> list[Variant]:
    """A kernel with each swap, untreated, and after each with each remedy.

    A remedy that chooses the swap itself is there once.
    """
    found = []
    for swap in swaps:
        untreated = Variant(kernel, "", given.append or "", tuple(given.knob or ()), swap)
        found.append(untreated)
        for one in _remedies(parser, given):
            if one.swap is None:
                found.append(one.applied(untreated))
            elif swap == swaps[0]:
                found.append(one.applied(replace(untreated, swap=ON_DISK)))
    return found


def check_all(parser: Parser, variants: Sequence[Variant]) -> None:
    """A usage error for two of one label, and for knobs that cannot be set."""
    for variant in variants:
        _check_knobs(parser, variant)
    said = [variant.label for variant in variants if variant.label]
    twice = next((label for label in said if said.count(label) > 1), None)
    if twice is not None:
        parser.error(f"two variants with the label {twice!r}")


def _check_knobs(parser: Parser, variant: Variant) -> None:
    paths = [path for path, _ in variant.knobs]
    if len(set(paths)) < len(paths):
        parser.error(f"a knob is given twice: {max(paths, key=paths.count)}")
    for path in paths:
        if variant.swap.kind == NONE and "{swap}" in path:
            parser.error(f"knob {path}: with --swap none there is no {{swap}}")


def loaded(
    asked: Iterable[Variant], options: Options, unsaid: int | None, known: Iterable[Variant] = ()
) -> list[Variant]:
    """Each variant with the load and the memory of its workload; "" where both are the campaign's.

    unsaid: bytes of a workload that needs no more, where no --memory says otherwise (None).
    `known`: the variants that a campaign has already, whose memory others of their workload take.
    UserError (2) if a workload will not do.
    """
    memory = {one.workload: one.memory for one in known if one.workload}
    found = []
    for one in asked:
        name = one.workload or options.workload
        chosen, campaigns = find(name), name == options.workload
        load = chosen.completed(one.load, options.profile)
        if campaigns and not one.load:
            load = options.load
        size = one.memory or memory.get(name, 0)
        if not size:
            size = options.memory if campaigns or unsaid is None else chosen.memory_of(unsaid)
        whole = replace(one, workload=name, load=load, memory=size)
        same = (name, load, size) == (options.workload, options.load, options.memory)
        found.append(replace(whole, workload="", load="", memory=0) if same else whole)
    return found


def check_loads(options: Options) -> None:
    """UserError (2) for loads that will not do, or would keep variants of one workload apart."""
    seen: dict[str, Options] = {}
    for variant in options.variants:
        its = options.of(variant)
        find(its.workload).check(its)
        first = seen.setdefault(its.workload, its)
        for what in ("load", "memory"):
            one, other = getattr(first, what), getattr(its, what)
            if one != other:
                raise UserError(
                    f"variants of {its.workload} with another {what}: {one} and {other}",
                    hint="they could not be compared: write the same in each, or another plan",
                    status=Exit.USAGE,
                )


def with_fs(options: Options, kept: Sequence[Variant]) -> Options:
    """With the file system that its workloads are about, where nobody has just said one.

    kept: the variants that a campaign has already, whose file system others take. UserError (2) if
    the workloads are about several, or one that comes to a campaign about another than it has.
    """
    default = ROWS["fs"].default
    about = {name: find(name).fs or default for name in options.workloads}
    if kept:
        known = replace(options, variants=tuple(kept)).workloads
        about = {name: fs for name, fs in about.items() if name not in known and find(name).fs}
        about = {known[0]: options.fs} | about
    if len(set(about.values())) > 1:
        raise UserError(
            "which file system shall all have? "
            + ", ".join(f"{name} is about {fs}" for name, fs in about.items()),
            hint=f"--fs {next(iter(about.values()))}, or fs in the plan's [parameters]",
            status=Exit.USAGE,
        )
    return replace(options, fs=next(iter(about.values())))
