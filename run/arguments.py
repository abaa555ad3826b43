# SPDX-License-Identifier: GPL-2.0-or-later
"""Combines a command line with the plan that it names or resumes into the options."""

import argparse
import sys
from collections import ChainMap
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from contract import values
from contract.checkout import ShowVersion
from contract.command_line import Parser, build_parser, check, given, usual, with_defaults
from contract.levels import looks as looks_up_to
from contract.option_table import ROWS
from contract.options import Options, flag
from contract.run_files import PLAN_FILE
from contract.variant import Variant
from errors import Exit, UserError, run_command
from run.bisect import options as bisect
from run.changed_kernels import change_options
from run.hosts import host_list
from run.plans import asked as asked_plan
from run.plans.asked import AskedPlan, without_overridden
from run.run_folders import folder
from run.variants import (
    check_all,
    check_loads,
    check_variants,
    variants_given,
    with_fs,
    with_workload_settings,
)
from workloads.registry import resolved, with_gitks


class ParsedArgs(NamedTuple):
    """The options of a command line and its plans, as one table each; earlier tables win.

    The order: the command line, then the plan that it names, then the plan of the campaign that it
    resumes. The campaign later refuses options that do not fit its runs.
    """

    words: argparse.Namespace  # the command line, with options that are not in the option table
    alone: Mapping[str, Any]  # options of the command line
    now: Mapping[str, Any]  # `alone` and the plan that the command line names
    in_all: Mapping[str, Any]  # `now` and the campaign's own plan
    named: AskedPlan
    stored: AskedPlan


def parse(argv: list[str]) -> Options:
    """Parse a command line; exits with status 2 after a usage error, as argparse does."""
    parser = build_parser()
    change_options.add(parser)
    bisect.add_options(parser)
    host_list.add_option(parser)
    parser.add_argument("--version", action=ShowVersion)
    for word in argv:
        if not values.is_utf8(word):
            parser.error(f"not UTF-8, as a plan.toml has to be: {word!r}")
    parser.refuse_lost(argv)
    parsed = _parsed(parser, argv)
    bisect.refuse_alone(parser, parsed.words)
    _check_on(parser, parsed)
    check_variants(parser, parsed.words)
    added = [*parsed.named.variants, *variants_given(parser, parsed.words, parsed.stored.variants)]
    check(parser, parsed.in_all, with_gitks(), [*parsed.stored.variants, *added])
    options = with_defaults(parsed.in_all, with_gitks=with_gitks())
    options = resolved(options, memory_given="memory" in parsed.in_all)
    kept = with_workload_settings(parsed.stored.variants, options, None)
    variants = asked_plan.merged(
        kept, with_workload_settings(added, options, _default_memory(parsed), kept)
    )
    options = replace(options, variants=variants or (Variant("debian:stable"),))
    check_all(parser, options.variants)
    check_loads(options)
    if "fs" not in parsed.now:
        options = with_fs(options, kept)
    looks = _looks(parser, parsed, options)
    options = replace(
        options, looks=looks, runs=looks[-1] if looks else parsed.in_all.get("runs", 1)
    )
    if options.device is None:
        _check_machine(parser, options)
    _check_fail_on(parser, options)
    if "cpu_mips" in parsed.alone and (options.clock == "host" or options.accel == "kvm"):
        parser.error("--cpu-mips needs the guest's clock; this run uses the host's")
    return options


def _parsed(parser: Parser, argv: list[str]) -> ParsedArgs:
    """Read the command line and its plans once each; a plan yields to later options."""
    words = parser.parse_args(argv)
    if words.resume is not None and words.out not in (None, words.resume):
        parser.error("--resume DIR and --out are two folders: results go to DIR")
    stored, named = _plans(parser, words)
    alone = given(words)
    named = _yielding(parser, named, alone)
    now = ChainMap(alone, dict(named.options))
    stored = _yielding(parser, stored, now)
    return ParsedArgs(words, alone, now, ChainMap(*now.maps, dict(stored.options)), named, stored)


def _yielding(parser: Parser, plan: AskedPlan, later: Mapping[str, Any]) -> AskedPlan:
    """The plan without overridden options; a usage error if it needs its edited machine file."""
    if plan.edited and "machine" not in later:
        parser.error(plan.edited)
    return without_overridden(plan, later)


def _default_memory(command_line: ParsedArgs) -> int | None:
    """Bytes of memory for a workload that needs no more; None if this command sets the memory."""
    if "memory" in command_line.now or "device" in command_line.in_all:
        return None
    return int(usual(command_line.in_all)["memory"])


def _check_machine(parser: Parser, options: Options) -> None:
    """A usage error for disk options that do not describe a disk."""
    disk = {name: getattr(options, name) for name in ROWS if name.startswith("disk_")}
    model = [name for name in disk if name not in ("disk_iops", "disk_bps")]
    if options.disk_kind == "rotating" and (options.disk_parallel or 1) > 1:
        parser.error("--disk-parallel: a rotating disk does one at a time")
    if any(disk[name] for name in model) and not all(disk.values()):
        missing = ", ".join(flag(name) for name, value in disk.items() if not value)
        parser.error(f"a modelled disk also needs {missing} (or a --machine that has it)")


def _plans(parser: Parser, words: argparse.Namespace) -> tuple[AskedPlan, AskedPlan]:
    """The campaign's own plan and the named plan; an AskedPlan() in place of a missing plan."""
    stored, named = AskedPlan(), AskedPlan()
    if words.resume is not None:
        path = Path(words.resume) / PLAN_FILE
        if not path.is_file():
            parser.error(f"--resume {words.resume}: no campaign there (it has no plan.toml)")
        stored = _read(parser, path, resumed=True)
    if words.plan is not None:
        named = _read(parser, Path(words.plan))
    return stored, named


def _read(parser: Parser, path: Path, *, resumed: bool = False) -> AskedPlan:
    try:
        plan = asked_plan.read(path, resumed=resumed)
    except ValueError as error:
        parser.error(str(error))
    # So that usage errors name the plan: argparse would blame the command line.
    parser.prefix = f"{path}: "
    parser.refuse_lost(plan.argv)
    options = given(parser.parse_args(plan.argv))
    parser.prefix = ""
    return replace(plan, options=options)


def _check_on(parser: Parser, command_line: ParsedArgs) -> None:
    """A usage error for options that runs on other hosts do not allow."""
    if (command_line.words.on or host_list.LOCAL) == host_list.LOCAL:
        return
    if "device" in command_line.in_all:
        parser.error("--on is for VMs, not for --device")
    if "jobs" in command_line.alone:
        parser.error("--jobs does not go with --on: give each host its slots, HOST=SLOTS")


def _check_fail_on(parser: Parser, options: Options) -> None:
    """A usage error if --fail-on waits for a verdict, and there can be none.

    A campaign that exists, or a machine's (one run at a time), may hold variants not named now.
    """
    held = options.device is not None or (folder(options) / PLAN_FILE).exists()
    verdicts = set(options.fail_on) & set(values.VERDICTS)
    # Each workload has a baseline of its own.
    if verdicts and not held and len(options.variants) <= len(options.workloads):
        parser.error(
            f"--fail-on {','.join(options.fail_on)} compares: give two variants or more (of one "
            "workload), or --fail-on failed"
        )


def _looks(parser: Parser, command_line: ParsedArgs, options: Options) -> tuple[int, ...]:
    """The looks for the limit given now, else those that the campaign planned."""
    limit = command_line.in_all.get("stop_when_sure")
    if "runs" in command_line.alone and "stop_when_sure" in command_line.alone:
        parser.error("--runs and --stop-when-sure do not go together")
    if "runs" in command_line.alone and command_line.stored.looks:
        parser.error("--runs: this campaign stops when sure (raise --stop-when-sure)")
    if "runs" in command_line.alone or limit is None:
        return command_line.stored.looks
    # Each workload has a baseline of its own.
    comparisons = len(options.variants) - len(options.workloads)
    if comparisons < 1:
        parser.error("--stop-when-sure compares: give two variants or more (of one workload)")
    try:
        return looks_up_to(limit, comparisons)
    except ValueError as error:
        parser.error(f"--stop-when-sure: {error}")


def main() -> int:
    """Check the command line of run_test.sh and print how to run it, one word or two."""
    if bisect.is_asked(sys.argv[1:]):
        bisected = bisect.parse(sys.argv[1:])
        options = parse(bisected.options)
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
