# SPDX-License-Identifier: GPL-2.0-or-later
"""A command line together with the plan that it names or goes on with: what is to be done."""

import argparse
import sys
from dataclasses import replace
from pathlib import Path

from contract.command_line import Parser, build_parser, check, filled, running
from contract.levels import looks as looks_up_to
from contract.options import ROWS, Options
from contract.run_files import PLAN_FILE
from contract.spelling import flag
from contract.swap import NONE, ON_DISK
from contract.variant import Variant
from contract.workload import DESKTOP
from errors import run_command
from run import asked_plan
from run.asked_plan import AskedPlan
from workloads.registry import has_gitks, resolved


def parse(argv: list[str]) -> Options:
    """Parse a command line; a usage error exits with status 2, as argparse does."""
    parser = build_parser()
    given = parser.parse_args(argv)
    if given.resume is not None and given.out not in (None, given.resume):
        parser.error("--resume DIR and --out are two folders: results go to DIR")
    stored = _stored(parser, given)
    # What the command line says comes last, and so wins; a campaign's own folder refuses later
    # what does not fit the runs that it holds.
    args = parser.parse_args([*stored.argv, *argv])
    gitks = has_gitks(args.workload or DESKTOP)
    check(parser, args, gitks)
    variants = _variants(parser, given, stored)
    looks = _looks(parser, given, args, stored.looks, len(variants))
    runs = looks[-1] if looks else args.runs or 1
    options = filled(args, variants=variants, looks=looks, runs=runs, gitks=gitks)
    if options.device is None:
        _check_machine(parser, options)
    if given.cpu_mips and options.clock == "host":
        parser.error("--cpu-mips is of a clock of the guest's own, and this one is the host's")
    return resolved(options, memory_said=args.memory is not None)


def _check_machine(parser: Parser, options: Options) -> None:
    """A usage error for what no machine heeds."""
    asked = {name: getattr(options, name) for name in ROWS if name.startswith("disk_")}
    model = [name for name in asked if name not in ("disk_iops", "disk_bps")]
    if options.disk_kind == "rotating" and (options.disk_parallel or 1) > 1:
        parser.error("--disk-parallel: a rotating disk does one at a time")
    if any(asked[name] for name in model) and not all(asked.values()):
        missing = ", ".join(flag(name) for name, value in asked.items() if not value)
        parser.error(f"a disk without {missing} is no model (or take a --machine that says it)")


def _stored(parser: Parser, given: argparse.Namespace) -> AskedPlan:
    """The campaign's own plan, with what a named plan says on top; an empty one without either."""
    found = AskedPlan()
    if given.resume is not None:
        path = Path(given.resume) / PLAN_FILE
        if not path.is_file():
            parser.error(f"--resume {given.resume}: no campaign there (it has no plan.toml)")
        found = _read(parser, path, resumed=True)
    if given.plan is not None:
        named = _read(parser, Path(given.plan))
        variants = asked_plan.merged(found.variants, named.variants)
        found = replace(found, argv=found.argv + named.argv, variants=variants)
    return found


def _read(parser: Parser, path: Path, *, resumed: bool = False) -> AskedPlan:
    try:
        found = asked_plan.read(path, resumed=resumed)
    except ValueError as error:
        parser.error(str(error))
    # Said in the plan's own name: argparse knows only its own words.
    parser.prefix = f"{path}: "
    parser.parse_args(list(found.argv))
    parser.prefix = ""
    return found


def _variants(parser: Parser, given: argparse.Namespace, stored: AskedPlan) -> tuple[Variant, ...]:
    """The plan's variants, and those of the command line."""
    own = [name for name in ("kernel", "label", "append", "swap", "knob") if getattr(given, name)]
    if given.plan is not None and own:
        parser.error(f"{flag(own[0])} does not go with --plan: write it there")
    if given.resume is not None and own and not given.kernel:
        parser.error(f"{flag(own[0])} needs the --kernel that it is for")
    kernels = given.kernel or ["debian:stable"]
    swaps = given.swap or [ON_DISK]
    if len(set(swaps)) < len(swaps):
        parser.error(f"a swap is given twice: {max(swaps, key=swaps.count)}")
    each = [(kernel, swap) for kernel in kernels for swap in swaps]
    labels = given.label or [""] * len(each)
    if len(labels) != len(each):
        of = f"{len(kernels)} --kernel" + (f" with {len(swaps)} --swap" if len(swaps) > 1 else "")
        parser.error(f"{len(labels)} --label for {of}: as many, or none")
    asked = [
        Variant(kernel, label, given.append or "", tuple(given.knob or ()), swap)
        for (kernel, swap), label in zip(each, labels, strict=True)
    ]
    if given.device is not None:
        only = running(given)
        _check_knobs(parser, only)
        return (only,)
    if given.plan is not None or (given.resume is not None and not given.kernel):
        asked = []
    variants = asked_plan.merged(stored.variants, asked) or (Variant("debian:stable"),)
    said = [variant.label for variant in variants if variant.label]
    for variant in variants:
        _check_knobs(parser, variant)
    twice = next((label for label in said if said.count(label) > 1), None)
    if twice is not None:
        parser.error(f"two variants with the label {twice!r}")
    return variants


def _check_knobs(parser: Parser, variant: Variant) -> None:
    """A usage error for knobs that cannot be set."""
    paths = [path for path, _ in variant.knobs]
    if len(set(paths)) < len(paths):
        parser.error(f"a knob is given twice: {max(paths, key=paths.count)}")
    for path in paths:
        if variant.swap.kind == NONE and "{swap}" in path:
            parser.error(f"knob {path}: with --swap none there is no {{swap}}")


def _looks(
    parser: Parser,
    given: argparse.Namespace,
    args: argparse.Namespace,
    stored: tuple[int, ...],
    variants: int,
) -> tuple[int, ...]:
    """The looks that are due: of the limit given now, else those that were planned."""
    if given.runs is not None and given.stop_when_sure is not None:
        parser.error("--runs and --stop-when-sure do not go together")
    if given.runs is not None and stored:
        parser.error("--runs: this campaign stops when sure (raise --stop-when-sure)")
    if given.runs is not None or args.stop_when_sure is None:
        return stored
    if variants < 2:
        parser.error("--stop-when-sure compares: give two variants or more")
    try:
        return looks_up_to(args.stop_when_sure, variants - 1)
    except ValueError as error:
        parser.error(f"--stop-when-sure: {error}")


def main() -> int:
    """Check a command line for run_test.sh and print how it is to be run: what, a line each."""
    options = parse(sys.argv[1:])
    if options.dry_run:
        print("dry-run")
    else:
        print("install" if options.install else "no-install", "device" if options.device else "vm")
    return 0


if __name__ == "__main__":
    sys.exit(run_command("run_test.sh", main))
