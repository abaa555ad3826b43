# SPDX-License-Identifier: GPL-2.0-or-later
"""The command line of run_test.sh, generated from the option table (contract.option_table)."""

import argparse
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NoReturn

from contract import machine_model, values
from contract.option_rows import CAMPAIGN, DEVICE, GITKS, PROFILES, VM, Row
from contract.option_table import ROWS
from contract.options import MADE, Options, defaults, flag
from contract.swap import ON_DISK
from contract.variant import RUNNING, Variant
from contract.workload import DESKTOP
from errors import lost_value

# Options that `variants` replaces.
IN_VARIANTS = (
    *("kernel", "label", "append", "swap", "knob", "remedy", "remedies", "daemon", "slice"),
    "plan",
)
EXAMPLES = """\
examples:
  ./run_test.sh                             Debian stable's kernel on a laptop, four gitk's, in a VM
  ./run_test.sh --profile quick             the same in some three minutes, with less of all
  ./run_test.sh --kernel debian:6.1 --kernel debian:7.2 --runs 5       compare two kernels
  ./run_test.sh --swap disk --swap zram --runs 5                       compare two ways to swap
  ./run_test.sh --resume results/mine       go on with what was interrupted
  ./run_test.sh --resume results/mine --kernel debian:6.12             add a variant
  ./run_test.sh --resume results/mine --remedy bfq                     the same with a remedy
  ./run_test.sh --plan plan.toml            knobs, workloads (docs/reference/plan-toml.md)
  ./run_test.sh --kernel debian:6.1 --kernel debian:7.2 --stop-when-sure 20
  ./run_test.sh --kernel ~/linux            a kernel build tree
  ./run_test.sh --kernel /boot/vmlinuz-6.12 --machine ssd
  ./run_test.sh --dry-run                   say what would be done, and do nothing
  sudo ./run_test.sh --device /dev/sdb5     on this machine, on that empty partition

exit status:
  0 ran to its end (a freeze, or an OOM kill, is a finding, not a failure)   2 usage
  3 something needed is missing, a run was cut short by something else than the kernel, or there
    is no whole report   4 the kernel hung, panicked or was lost (results are kept and reported)
  5 a verdict, or a run, that --fail-on names   6 a run went on and was not done at its limit
  130 interrupted
  of several the first in this order: 130, 3 (cut short), 4, 3 (no whole report), 5, 6
  (docs/reference/exit-statuses.md)
"""


class Parser(argparse.ArgumentParser):
    """An ArgumentParser whose usage errors are one line; `prefix` names the file they are about."""

    prefix = ""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {self.prefix}{message} (see --help)\n")

    def refuse_lost(self, argv: Iterable[str]) -> None:
        """Exit with a usage error if argparse would lose a value."""
        if lost := lost_value(argv):
            self.error(f"{lost}: '--' is no value")


def build_parser() -> Parser:
    """The parser of run_test.sh; options that are not given are None."""
    parser = Parser(
        prog="run_test.sh",
        description="Reproduce a desktop freeze on a real kernel and draw it: encrypted LVM swap "
        "and file system, music and four gitk's, every line's latency.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    groups: dict[str, argparse._ArgumentGroup] = {}
    for name, row in ROWS.items():
        group = groups.get(row.group) or parser.add_argument_group(row.group)
        groups[row.group] = group
        group.add_argument(flag(name), dest=name, help=row.help, **_how(row))
    return parser


def _how(row: Row) -> dict[str, Any]:
    if isinstance(row.default, bool):
        return {"action": "store_const", "const": not row.default}
    read = row.read or (None if row.choices else values.not_empty)
    how = {"type": read, "metavar": row.metavar, "choices": row.choices}
    if row.repeated:
        how["action"] = "append"
    return {key: value for key, value in how.items() if value is not None}


def given(parsed: argparse.Namespace) -> dict[str, Any]:
    """The options of the option table that a command line gave."""
    return {name: value for name in ROWS if (value := getattr(parsed, name)) is not None}


def check(
    parser: Parser,
    options: Mapping[str, Any],
    with_gitks: Mapping[str, str],
    variants: Sequence[Variant] = (),
) -> None:
    """Exit with a usage error if options contradict each other.

    options: those given; with_gitks: the workloads that have gitk's, and their kind; variants: the
    variants that the options apply to.
    """
    default = options.get("workload", DESKTOP)
    workloads = list(dict.fromkeys(item.workload or default for item in variants)) or [default]
    gitks = {with_gitks[name] for name in workloads if name in with_gitks}
    on_device = "device" in options
    for name, row in ROWS.items():
        if name not in options:
            continue
        if row.only == DEVICE and not on_device:
            parser.error(f"{flag(name)} goes with --device")
        if row.only == VM and on_device:
            parser.error(f"{flag(name)} is for a VM, not for --device")
        if row.only == CAMPAIGN and on_device:
            parser.error(
                f"{flag(name)} is for VMs: a run on a machine is a fresh boot "
                "of it (reboot, and run this again with the same --out)"
            )
        if not row.applies(gitks):
            others = " or ".join(workloads)
            kind = "gitk's" if row.of_gitks == GITKS else " or ".join(row.of_gitks)
            parser.error(f"{flag(name)} is for a workload with {kind}, not for {others}")
        if row.needs and row.needs not in options:
            parser.error(f"{flag(name)} goes with {flag(row.needs)}")
    for name in ("swap", "remedy"):
        if on_device and len(options.get(name, ())) > 1:
            parser.error(
                f"{flag(name)} may be given once with --device: a run on a machine is one variant's"
            )
    if ("bare" in options) != ("run_dir" in options):
        parser.error("--bare and --run-dir go together")
    if "bare" in options and "dry_run" in options:
        parser.error("--bare and --dry-run do not go together")
    needed = [name for name in ("repo", "music") if ROWS[name].applies(gitks)]
    if "bare" in options and not all(name in options for name in needed):
        parser.error(f"--bare needs {' and '.join(map(flag, needed))}")


def usual(options: Mapping[str, Any]) -> dict[str, Any]:
    """The default of each option, from the given profile and machine."""
    profile, machine = (options.get(name, ROWS[name].default) for name in ("profile", "machine"))
    return defaults(PROFILES[profile], {} if "device" in options else machine_model.read(machine))


def with_defaults(options: Mapping[str, Any], **more: Any) -> Options:
    """The given options, with defaults for the rest; more: fields derived from the options."""
    known = {name: value for name, value in options.items() if name not in IN_VARIANTS}
    unneeded = {name: 0 for name, row in ROWS.items() if row.needs and row.needs not in known}
    no_memory = {"memory": 0} if "device" in known else {}
    return Options(
        **{**usual(options), **known, **unneeded, **no_memory},
        hang_after=PROFILES[options.get("profile", ROWS["profile"].default)].hang_after,
        history="repo" if "repo" in known else MADE,
        music_kind="own" if "music" in known else "made",
        **more,
    )


def parse_measured(argv: list[str], with_gitks: Mapping[str, str]) -> Options:
    """Parse the command line of a test of this machine itself (--bare, --device).

    with_gitks: the workloads that have gitk's, and their kind.
    """
    parser = build_parser()
    options = given(parser.parse_args(argv))
    check(parser, options, with_gitks)
    return with_defaults(options, variants=(running(options),), with_gitks=with_gitks)


def running(options: Mapping[str, Any]) -> Variant:
    """The only variant of a test of this machine."""
    return Variant(
        RUNNING,
        options.get("label", [""])[0],
        "",
        tuple(options.get("knob", ())),
        options.get("swap", [ON_DISK])[0],
        remedy=options.get("remedy", [""])[0],
        daemon=options.get("daemon", ""),
        slice=tuple(options.get("slice", ())),
    )
