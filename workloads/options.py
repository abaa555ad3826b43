# SPDX-License-Identifier: GPL-2.0-or-later
"""The options of run_test.sh, with the profile's values and the plan's filled in."""

import argparse
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from workloads import plan
from workloads.arguments import PROFILES, Parser, build_parser
from workloads.plan import Variant

RUNNING = "the running one"  # the kernel of a test of this machine
ATOMIC_RATE = 100
LIVE_LOCK_AFTER = 180


@dataclass(frozen=True)
class Parameters:
    """The workload's parameters: what must be equal for two runs to be compared."""

    profile: str
    gitk: int
    commits: int
    every: int
    passes: int
    touch: float
    memory: int
    history: str  # made, or repo and which (identity.py)
    music_kind: str  # made, or own and which
    fs: str
    crypt: bool
    atomic_order: int  # 0: no echo load
    atomic_rate: int  # echoes a second

    def as_dict(self) -> dict[str, Any]:
        """For meta.json."""
        return asdict(self)


@dataclass(frozen=True)
class Options:
    """What the command line and its plan asked for.

    runs: of each variant, in all with `resume`, else more than there are; looks: see plan.looks.
    """

    variants: tuple[Variant, ...]
    runs: int
    baseline: str | None
    margin: float | None
    looks: tuple[int, ...]
    resume: str | None
    out: str | None
    device: str | None
    destroy_data: str | None
    bare: bool
    run_dir: str | None
    accel: str
    cpus: int
    disk_iops: int | None
    disk_bps: int | None
    timeout: int
    hang_after: int
    live_lock_after: int
    repo: str | None
    music: str | None
    mirror: str | None
    evidence: bool
    dry_run: bool
    install: bool
    parameters: Parameters

    def machine(self) -> dict[str, Any]:
        """What plan.toml keeps of the VM: 0 stands for an option that was not given."""
        return {
            "accel": self.accel,
            "cpus": self.cpus,
            "disk_iops": self.disk_iops or 0,
            "disk_bps": self.disk_bps or 0,
            "timeout": self.timeout,
            "live_lock_after": self.live_lock_after,
            "evidence": self.evidence,
            **({"mirror": self.mirror} if self.mirror else {}),
        }


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
    _check(parser, args)
    variants = _variants(parser, given, stored)
    looks = _looks(parser, given, args, stored.looks, len(variants))
    parameters = _parameters(parser, args)
    profile = PROFILES[args.profile]
    return Options(
        variants=variants,
        runs=looks[-1] if looks else args.runs or 1,
        baseline=args.baseline,
        margin=args.margin,
        looks=looks,
        resume=args.resume,
        out=args.out,
        device=args.device,
        destroy_data=args.destroy_data,
        bare=args.bare,
        run_dir=args.run_dir,
        accel=args.accel or "auto",
        cpus=args.cpus or 2,
        disk_iops=args.disk_iops,
        disk_bps=args.disk_bps,
        timeout=args.timeout or profile.timeout,
        hang_after=profile.hang_after,
        live_lock_after=LIVE_LOCK_AFTER if args.live_lock_after is None else args.live_lock_after,
        repo=args.repo,
        music=args.music,
        mirror=args.mirror,
        evidence=not args.no_evidence,
        dry_run=args.dry_run,
        install=not args.no_install,
        parameters=parameters,
    )


def _stored(parser: Parser, given: argparse.Namespace) -> plan.PlanFile:
    """The campaign's own plan, with what a named plan says on top; an empty one without either."""
    found = plan.PlanFile((), ())
    if given.resume is not None:
        path = Path(given.resume) / "plan.toml"
        if not path.is_file():
            parser.error(f"--resume {given.resume}: no campaign there (it has no plan.toml)")
        found = _read(parser, path, resumed=True)
    if given.plan is not None:
        named = _read(parser, Path(given.plan))
        variants = plan.merged(found.variants, named.variants)
        found = plan.PlanFile(found.argv + named.argv, variants, found.looks)
    return found


def _read(parser: Parser, path: Path, *, resumed: bool = False) -> plan.PlanFile:
    try:
        found = plan.read(path, resumed=resumed)
    except ValueError as error:
        parser.error(str(error))
    # Said in the plan's own name: argparse knows only its own words.
    parser.prefix = f"{path}: "
    parser.parse_args(list(found.argv))
    parser.prefix = ""
    return found


def _check(parser: Parser, args: argparse.Namespace) -> None:
    if args.device is None:
        for option in ("destroy_data", "bare", "run_dir"):
            if getattr(args, option):
                parser.error(f"--{option.replace('_', '-')} goes with --device")
    else:
        vm_only = ("kernel", "memory", "disk_iops", "disk_bps", "accel", "cpus", "mirror", "append")
        for option in vm_only:
            if getattr(args, option) is not None:
                parser.error(f"--{option.replace('_', '-')} is for a VM, not for --device")
        for option in ("runs", "plan", "resume", "stop_when_sure"):
            if getattr(args, option) is not None:
                parser.error(
                    f"--{option.replace('_', '-')} is for VMs: a run on a machine is a fresh boot "
                    "of it (reboot, and run this again with the same --out)"
                )
    if args.bare != (args.run_dir is not None):
        parser.error("--bare and --run-dir go together")
    if args.bare and args.dry_run:
        parser.error("--bare and --dry-run do not go together")
    if args.bare and not (args.repo and args.music):
        parser.error("--bare needs --repo and --music")
    if args.atomic_rate is not None and args.atomic_order is None:
        parser.error("--atomic-rate goes with --atomic-order")
    if args.repo is not None and args.commits is not None:
        parser.error("--commits is for the made history, not for --repo")


def _variants(
    parser: Parser, given: argparse.Namespace, stored: plan.PlanFile
) -> tuple[Variant, ...]:
    """The plan's variants, and those of the command line."""
    own = [name for name in ("kernel", "label", "append", "knob") if getattr(given, name)]
    if given.plan is not None and own:
        parser.error(f"--{own[0]} does not go with --plan: write it there")
    if given.resume is not None and own and not given.kernel:
        parser.error(f"--{own[0]} needs the --kernel that it is for")
    kernels = given.kernel or ["debian:stable"]
    labels = given.label or [None] * len(kernels)
    if len(labels) != len(kernels):
        parser.error(f"{len(labels)} --label for {len(kernels)} --kernel: as many, or none")
    asked = [
        Variant(kernel, label, given.append or "", tuple(given.knob or ()))
        for kernel, label in zip(kernels, labels, strict=True)
    ]
    if given.device is not None:
        return (Variant(RUNNING, labels[0], "", tuple(given.knob or ())),)
    if given.plan is not None or (given.resume is not None and not given.kernel):
        asked = []
    variants = plan.merged(stored.variants, asked) or (Variant("debian:stable"),)
    said = [variant.label for variant in variants if variant.label is not None]
    for variant in variants:
        paths = [path for path, _ in variant.knobs]
        if len(set(paths)) < len(paths):
            parser.error(f"a knob is given twice: {max(paths, key=paths.count)}")
    twice = next((label for label in said if said.count(label) > 1), None)
    if twice is not None:
        parser.error(f"two variants with the label {twice!r}")
    return variants


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
        asked = plan.looks(args.stop_when_sure, variants - 1)
    except ValueError as error:
        parser.error(f"--stop-when-sure: {error}")
    return asked


def _parameters(parser: Parser, args: argparse.Namespace) -> Parameters:
    profile = PROFILES[args.profile]
    memory = args.memory or profile.memory
    if memory < 128 << 20:
        parser.error("--memory: at least 128M")
    return Parameters(
        profile=args.profile,
        gitk=args.gitk,
        commits=0 if args.repo else args.commits or profile.commits,
        every=args.every,
        passes=args.passes or profile.passes,
        touch=profile.touch if args.touch is None else args.touch,
        memory=0 if args.device else memory,
        history="made" if args.repo is None else "repo",
        music_kind="made" if args.music is None else "own",
        fs=args.fs,
        crypt=not args.no_crypt,
        atomic_order=args.atomic_order or 0,
        atomic_rate=(args.atomic_rate or ATOMIC_RATE) if args.atomic_order else 0,
    )


def main() -> int:
    """Check a command line for run_test.sh and print how it is to be run: what, a line each."""
    options = parse(sys.argv[1:])
    if options.dry_run:
        print("dry-run")
    else:
        print("install" if options.install else "no-install", "device" if options.device else "vm")
    return 0


if __name__ == "__main__":
    sys.exit(main())
