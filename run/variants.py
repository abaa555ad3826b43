# SPDX-License-Identifier: GPL-2.0-or-later
"""The variants of a command line and its plans, with their workloads' load and memory."""

import argparse
from collections.abc import Iterable, Sequence
from dataclasses import replace

from contract import command_line, remedy
from contract.command_line import Parser, running
from contract.option_table import ROWS
from contract.options import Options, flag
from contract.remedy import Remedy
from contract.swap import NONE, ON_DISK
from contract.values import Refused
from contract.variant import Variant
from errors import Exit, UserError
from run.changed_kernels import change_options
from workloads.registry import find


def check_variants(parser: Parser, given: argparse.Namespace) -> None:
    """A usage error for invalid options about variants."""
    what = ("kernel", "label", "append", "swap", "knob", "remedy", "remedies")
    own = [name for name in what if getattr(given, name)]
    if option := change_options.without_kernel(given):
        parser.error(f"{option} needs a --kernel git:PATH@REV or debian-source:VERSION")
    if given.plan is not None and own:
        parser.error(f"{flag(own[0])} does not go with --plan: write it there")
    needs_kernel = [name for name in own if name not in ("remedy", "remedies")]
    if given.resume is not None and needs_kernel and not given.kernel:
        parser.error(f"{flag(needs_kernel[0])} needs the --kernel that it is for")
    for name, given_values in (("swap", given.swap or []), ("remedy", given.remedy or [])):
        if len(set(given_values)) < len(given_values):
            parser.error(f"a {name} is given twice: {max(given_values, key=given_values.count)}")
    if given.remedy and given.remedies:
        parser.error("--remedies are all of them: leave --remedy out")


def _remedies(parser: Parser, given: argparse.Namespace) -> list[Remedy]:
    """The remedies of the command line; a usage error for an unknown or damaged remedy."""
    try:
        return [
            remedy.find(name) for name in (remedy.named() if given.remedies else given.remedy or ())
        ]
    except Refused as error:
        parser.error(str(error))


def variants_given(
    parser: Parser, given: argparse.Namespace, stored: Iterable[Variant]
) -> list[Variant]:
    """The variants of the command line; [] if a plan has them.

    `stored`: those of the campaign that is resumed. Without a --kernel the remedies apply to them.
    """
    remedies = _remedies(parser, given)
    if given.resume is not None and not given.kernel and given.device is None:
        return _beside_stored(parser, stored, remedies)
    kernels = change_options.kernels(given)
    swaps = given.swap or [ON_DISK]
    append, knobs = given.append or "", tuple(given.knob or ())
    variants: list[Variant] = []
    for kernel in kernels:
        untreated = [Variant(kernel, "", append, knobs, swap) for swap in swaps]
        variants += _with_remedies(untreated, remedies)
    labels = given.label or [""] * len(variants)
    if len(labels) != len(variants):
        of = f"{len(kernels)} {'kernels' if given.changes else '--kernel'}"
        of += f" with {len(swaps)} --swap" if len(swaps) > 1 else ""
        of += (
            f", {len(variants)} variants with the remedies"
            if given.remedy or given.remedies
            else ""
        )
        parser.error(f"{len(labels)} --label for {of}: as many, or none")
    if given.device is not None:
        alone = running(command_line.given(given))
        return [treatment.applied(alone) for treatment in remedies] or [alone]
    if given.plan is not None:
        return []
    return [replace(variant, label=label) for variant, label in zip(variants, labels, strict=True)]


def _with_remedies(untreated: Iterable[Variant], remedies: Sequence[Remedy]) -> list[Variant]:
    """Each variant, followed by the same with each remedy.

    A remedy that sets the swap itself is listed once for variants that differ only in the swap.
    """
    variants: list[Variant] = []
    for variant in untreated:
        variants.append(variant)
        for treatment in remedies:
            sets_swap = treatment.swap is not None
            treated = treatment.applied(replace(variant, swap=ON_DISK) if sets_swap else variant)
            if not sets_swap or treated not in variants:
                variants.append(treated)
    return variants


def _beside_stored(
    parser: Parser, stored: Iterable[Variant], remedies: Sequence[Remedy]
) -> list[Variant]:
    """The remedies for the untreated variants of the campaign that is resumed."""
    untreated = [replace(variant, label="") for variant in stored if not variant.remedy]
    if remedies and not untreated:
        parser.error("this campaign has no variant without a remedy: give the --kernel")
    return [variant for variant in _with_remedies(untreated, remedies) if variant.remedy]


def check_all(parser: Parser, variants: Sequence[Variant]) -> None:
    """A usage error for duplicate labels, and for knobs that cannot be set."""
    for variant in variants:
        _check_knobs(parser, variant)
    labels = [variant.label for variant in variants if variant.label]
    twice = next((label for label in labels if labels.count(label) > 1), None)
    if twice is not None:
        parser.error(f"two variants with the label {twice!r}")


def _check_knobs(parser: Parser, variant: Variant) -> None:
    paths = [path for path, _ in variant.knobs]
    if len(set(paths)) < len(paths):
        parser.error(f"a knob is given twice: {max(paths, key=paths.count)}")
    for path in paths:
        if variant.swap.kind == NONE and "{swap}" in path:
            parser.error(f"knob {path}: with --swap none there is no {{swap}}")


def with_workload_settings(
    asked: Iterable[Variant],
    options: Options,
    default_memory: int | None,
    known: Iterable[Variant] = (),
) -> list[Variant]:
    """The variants with load and memory of their workload; "" and 0 if all are the campaign's.

    default_memory: in bytes, of a workload that needs no more; None if the user set the memory.
    `known`: the campaign's existing variants, whose memory applies to others of their workload.
    UserError (2) if a workload is invalid.
    """
    memory = {variant.workload: variant.memory for variant in known if variant.workload}
    variants = []
    for variant in asked:
        name = variant.workload or options.workload
        chosen, campaigns = find(name), name == options.workload
        load = chosen.completed(variant.load, options.profile)
        if campaigns and not variant.load:
            load = options.load
        size = variant.memory or memory.get(name, 0)
        if not size:
            size = (
                options.memory
                if campaigns or default_memory is None
                else chosen.memory_of(default_memory, options.screen)
            )
        whole = replace(variant, workload=name, load=load, memory=size)
        same = (name, load, size) == (options.workload, options.load, options.memory)
        variants.append(replace(whole, workload="", load="", memory=0) if same else whole)
    return variants


def check_loads(options: Options) -> None:
    """UserError (2) for invalid loads, and for different loads or memory with one workload."""
    seen: dict[str, Options] = {}
    for variant in options.variants:
        its = options.of(variant)
        find(its.workload).check(its)
        first = seen.setdefault(its.workload, its)
        for what in ("load", "memory"):
            one, other = getattr(first, what), getattr(its, what)
            if one != other:
                raise UserError(
                    f"variants of {its.workload} differ in {what}: {one} and {other}",
                    hint="such variants cannot be compared: use one value, or two plans",
                    status=Exit.USAGE,
                )


def with_fs(options: Options, kept: Sequence[Variant]) -> Options:
    """The options with the file system that the workloads test, for when --fs is not given.

    kept: the campaign's existing variants, whose file system applies to others. UserError (2) if
    the workloads test different file systems, or a new workload another one than the campaign has.
    """
    default = ROWS["fs"].default
    about = {name: find(name).fs or default for name in options.workloads}
    if kept:
        known = replace(options, variants=tuple(kept)).workloads
        about = {name: fs for name, fs in about.items() if name not in known and find(name).fs}
        about = {known[0]: options.fs} | about
    if len(set(about.values())) > 1:
        raise UserError(
            "the workloads need one file system: "
            + ", ".join(f"{name} is about {fs}" for name, fs in about.items()),
            hint=f"--fs {next(iter(about.values()))}, or fs in the plan's [parameters]",
            status=Exit.USAGE,
        )
    return replace(options, fs=next(iter(about.values())))
