# SPDX-License-Identifier: GPL-2.0-or-later
"""A command line together with the plan that it names or goes on with: what is to be done."""

import argparse
import sys
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from contract import values
from contract.checkout import ShowVersion
from contract.command_line import Parser, build_parser, check, filled
from contract.levels import looks as looks_up_to
from contract.option_table import ROWS
from contract.options import Options
from contract.run_files import PLAN_FILE
from contract.spelling import flag
from contract.variant import Variant
from errors import Exit, UserError, run_command
from run.bisect import options as bisect
from run.changed_kernels import change_options
from run.hosts import host_list
from run.plans import asked as asked_plan
from run.plans.asked import AskedPlan, yielding
from run.run_folders import folder
from run.variants import (
    check_all,
    check_loads,
    check_variants,
    loaded,
    said_variants,
    with_fs,
)
from workloads.registry import resolved, with_gitks


class Said(NamedTuple):
    """A command line, alone and after its plans: of what is said twice the later word wins.

    First comes the plan of the campaign that it goes on with, then the one that it names, then its
    own words. What does not fit the runs that a campaign holds is refused later, by the campaign.
    """

    alone: argparse.Namespace
    now: argparse.Namespace  # with the plan that it names
    in_all: argparse.Namespace  # and with the campaign's own
    named: AskedPlan
    stored: AskedPlan


def parse(argv: list[str]) -> Options:
    """Parse a command line; a usage error exits with status 2, as argparse does."""
    parser = build_parser()
    change_options.add(parser)
    bisect.add_options(parser)
    host_list.add_option(parser)
    parser.add_argument("--version", action=ShowVersion)
    for word in argv:
        if not values.is_utf8(word):
            parser.error(f"not UTF-8, as a plan.toml has to be: {word!r}")
    parser.refuse_lost(argv)
    said = _said(parser, argv)
    bisect.refuse_alone(parser, said.alone)
    _check_on(parser, said)
    check_variants(parser, said.alone)
    asked = [*said.named.variants, *said_variants(parser, said.alone)]
    check(parser, said.in_all, with_gitks(), [*said.stored.variants, *asked])
    options = filled(said.in_all, with_gitks=with_gitks())
    options = resolved(options, memory_said=said.in_all.memory is not None)
    kept = loaded(said.stored.variants, options, None)
    variants = asked_plan.merged(kept, loaded(asked, options, _unsaid_memory(said), kept))
    options = replace(options, variants=variants or (Variant("debian:stable"),))
    check_all(parser, options.variants)
    check_loads(options)
    if said.now.fs is None:
        options = with_fs(options, kept)
    looks = _looks(parser, said, options)
    options = replace(options, looks=looks, runs=looks[-1] if looks else said.in_all.runs or 1)
    if options.device is None:
        _check_machine(parser, options)
    _check_fail_on(parser, options)
    if said.alone.cpu_mips and (options.clock == "host" or options.accel == "kvm"):
        parser.error("--cpu-mips is of a clock of the guest's own, and this one is the host's")
    return options


def _said(parser: Parser, argv: list[str]) -> Said:
    """Its own words are read first: each plan yields to what comes after it."""
    alone = parser.parse_args(argv)
    if alone.resume is not None and alone.out not in (None, alone.resume):
        parser.error("--resume DIR and --out are two folders: results go to DIR")
    stored, named = _plans(parser, alone)
    named = _yielding(parser, named, alone)
    now = parser.parse_args([*named.argv, *argv])
    stored = _yielding(parser, stored, now)
    in_all = parser.parse_args([*stored.argv, *named.argv, *argv])
    return Said(alone, now, in_all, named, stored)


def _yielding(parser: Parser, plan: AskedPlan, later: argparse.Namespace) -> AskedPlan:
    """The plan as far as what comes after it lets it; a usage error if its machine is gone."""
    if plan.edited and later.machine is None:
        parser.error(plan.edited)
    return yielding(parser, plan, later)


def _unsaid_memory(said: Said) -> int | None:
    """Bytes that a workload has which needs no more, unless somebody said so many just now."""
    if said.now.memory is not None or said.in_all.device is not None:
        return None
    return filled(argparse.Namespace(**{**vars(said.in_all), "memory": None})).memory


def _check_machine(parser: Parser, options: Options) -> None:
    """A usage error for what no machine heeds."""
    asked = {name: getattr(options, name) for name in ROWS if name.startswith("disk_")}
    model = [name for name in asked if name not in ("disk_iops", "disk_bps")]
    if options.disk_kind == "rotating" and (options.disk_parallel or 1) > 1:
        parser.error("--disk-parallel: a rotating disk does one at a time")
    if any(asked[name] for name in model) and not all(asked.values()):
        missing = ", ".join(flag(name) for name, value in asked.items() if not value)
        parser.error(f"a disk without {missing} is no model (or take a --machine that says it)")


def _plans(parser: Parser, given: argparse.Namespace) -> tuple[AskedPlan, AskedPlan]:
    """The campaign's own plan, and the one that is named; empty ones without either."""
    stored, named = AskedPlan(), AskedPlan()
    if given.resume is not None:
        path = Path(given.resume) / PLAN_FILE
        if not path.is_file():
            parser.error(f"--resume {given.resume}: no campaign there (it has no plan.toml)")
        stored = _read(parser, path, resumed=True)
    if given.plan is not None:
        named = _read(parser, Path(given.plan))
    return stored, named


def _read(parser: Parser, path: Path, *, resumed: bool = False) -> AskedPlan:
    try:
        found = asked_plan.read(path, resumed=resumed)
    except ValueError as error:
        parser.error(str(error))
    # Said in the plan's own name: argparse knows only its own words.
    parser.prefix = f"{path}: "
    parser.refuse_lost(found.argv)
    parser.parse_args(list(found.argv))
    parser.prefix = ""
    return found


def _check_on(parser: Parser, said: Said) -> None:
    """A usage error for what does not go with runs on other hosts."""
    if (said.alone.on or host_list.LOCAL) == host_list.LOCAL:
        return
    if said.in_all.device is not None:
        parser.error("--on is for VMs, not for --device")
    if said.alone.jobs is not None:
        parser.error("--jobs is of this machine: with --on give each host its slots, HOST=SLOTS")


def _check_fail_on(parser: Parser, options: Options) -> None:
    """A usage error if no verdict can be what --fail-on waits for.

    A campaign that is there, or that a machine makes run by run, may hold more than is named now.
    """
    held = options.device is not None or (folder(options) / PLAN_FILE).exists()
    verdicts = set(options.fail_on) & set(values.VERDICTS)
    # Each workload has a baseline of its own.
    if verdicts and not held and len(options.variants) <= len(options.workloads):
        parser.error(
            f"--fail-on {','.join(options.fail_on)} compares: give two variants or more (of one "
            "workload), or --fail-on failed"
        )


def _looks(parser: Parser, said: Said, options: Options) -> tuple[int, ...]:
    """The looks that are due: of the limit given now, else those that were planned."""
    runs, limit = said.alone.runs, said.in_all.stop_when_sure
    if runs is not None and said.alone.stop_when_sure is not None:
        parser.error("--runs and --stop-when-sure do not go together")
    if runs is not None and said.stored.looks:
        parser.error("--runs: this campaign stops when sure (raise --stop-when-sure)")
    if runs is not None or limit is None:
        return said.stored.looks
    # Each workload has a baseline of its own.
    comparisons = len(options.variants) - len(options.workloads)
    if comparisons < 1:
        parser.error("--stop-when-sure compares: give two variants or more (of one workload)")
    try:
        return looks_up_to(limit, comparisons)
    except ValueError as error:
        parser.error(f"--stop-when-sure: {error}")


def main() -> int:
    """Check a command line for run_test.sh and print how it is to be run: what, a line each."""
    if bisect.is_asked(sys.argv[1:]):
        asked = bisect.parse(sys.argv[1:])
        options = parse(asked.options)
        if options.dry_run:
            raise UserError("--dry-run does not go with a bisect", status=Exit.USAGE)
        print("install" if options.install else "no-install", "vm")
        return 0
    options = parse(sys.argv[1:])
    if options.dry_run:
        print("dry-run")
    else:
        print("install" if options.install else "no-install", "device" if options.device else "vm")
    return 0


if __name__ == "__main__":
    sys.exit(run_command("run_test.sh", main))
