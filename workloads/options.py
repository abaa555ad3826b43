# SPDX-License-Identifier: GPL-2.0-or-later
"""The options of run_test.sh: one parser, its profiles, and the workload's parameters."""

import argparse
import re
import sys
from dataclasses import asdict, dataclass
from typing import Any, NoReturn

EXAMPLES = """\
examples:
  ./run_test.sh                             Debian stable's kernel, 512 MiB, four gitk's, in a VM
  ./run_test.sh --profile quick             the same in two and a half minutes, with less of all
  ./run_test.sh --kernel debian:6.1 --out results/mine
  ./run_test.sh --kernel debian:7.2 --out results/mine       a second variant, same graphs
  ./run_test.sh --kernel ~/linux            a kernel build tree
  ./run_test.sh --kernel /boot/vmlinuz-6.12 --disk-iops 150 --disk-bps 80M
  ./run_test.sh --dry-run                   say what would be done, and do nothing
  sudo ./run_test.sh --device /dev/sdb5     on this machine, on that empty partition

exit status:
  0 ran to its end (a freeze is a finding, not a failure)   2 usage   3 something needed is missing
  4 the kernel hung, panicked or was lost (results are kept and reported)   130 interrupted
"""


@dataclass(frozen=True)
class Profile:
    """What a profile sets where no option says otherwise. Sizes in bytes, times in seconds."""

    memory: int
    commits: int
    passes: int
    timeout: int
    hang_after: int
    touch: float


PROFILES = {
    "quick": Profile(256 << 20, 60_000, 1, 600, 60, 0.25),
    "standard": Profile(512 << 20, 165_000, 1, 1_800, 120, 0.25),
    "full": Profile(512 << 20, 165_000, 4, 7_200, 120, 0.25),
}


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
    history: str
    fs: str
    crypt: bool

    def as_dict(self) -> dict[str, Any]:
        """For meta.json."""
        return asdict(self)


def size(text: str) -> int:
    """Bytes of `512M`, `2G`, `80k` or `4096` (powers of 1,024)."""
    match = re.fullmatch(r"(\d+)([kKmMgGtT]?)(?:i?B)?", text)
    if not match or int(match[1]) == 0:
        raise argparse.ArgumentTypeError(f"not a size: {text!r} (for example 512M)")
    return int(match[1]) << {"": 0, "k": 10, "m": 20, "g": 30, "t": 40}[match[2].lower()]


def count(text: str) -> int:
    """A whole number of 1 or more."""
    if not re.fullmatch(r"\d{1,9}", text) or int(text) < 1:
        raise argparse.ArgumentTypeError(f"not a number of 1 or more: {text!r}")
    return int(text)


def gitks(text: str) -> int:
    """How many gitk's: 1 to 16 (each stream needs a port of the guest's virtio-serial bus)."""
    number = count(text)
    if number > 16:
        raise argparse.ArgumentTypeError(f"at most 16: {text!r}")
    return number


def label(text: str) -> str:
    """A label names a folder: letters, digits, `.`, `_`, `+` and `-`, at most 64 of them."""
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,63}", text):
        raise argparse.ArgumentTypeError(
            f"not a label: {text!r} (letters, digits, '.', '_', '+', '-', at most 64)"
        )
    return text


def touch(text: str) -> float:
    """A ratio from 0 to 100."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 100:
        raise argparse.ArgumentTypeError(f"not a number from 0 to 100: {text!r}")
    return value


@dataclass(frozen=True)
class Options:
    """What the command line asked for, with the profile's values filled in."""

    kernel: str
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
    repo: str | None
    music: str | None
    mirror: str | None
    out: str | None
    label: str | None
    dry_run: bool
    install: bool
    parameters: Parameters


class Parser(argparse.ArgumentParser):
    """argparse's, with a usage error in one line."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message} (see --help)\n")


def build_parser() -> argparse.ArgumentParser:
    """The parser of run_test.sh."""
    parser = Parser(
        prog="run_test.sh",
        description="Reproduce a desktop freeze on a real kernel and draw it: encrypted LVM swap "
        "and file system, music and four gitk's, every line's latency.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    what = parser.add_argument_group("what is tested")
    what.add_argument(
        "--kernel",
        default=None,
        metavar="SPEC",
        help="debian:SUITE, debian:VERSION (debian:7.2), host, a bzImage or vmlinuz with its "
        "modules beside it, PATH,modules=DIR, or a kernel build tree (default: debian:stable)",
    )
    what.add_argument(
        "--device",
        metavar="DEV",
        help="test this machine, on this unused and empty block device (or file); needs root",
    )
    what.add_argument(
        "--destroy-data",
        metavar="DEV",
        help="the device once more: it may hold data, which will be destroyed",
    )
    what.add_argument("--label", type=label, help="name of the variant in graphs and folders")

    load = parser.add_argument_group("the workload")
    load.add_argument("--profile", choices=sorted(PROFILES), default="standard")
    load.add_argument("--memory", type=size, metavar="512M", help="memory of the VM")
    load.add_argument("--gitk", type=gitks, default=4, metavar="4", help="how many gitk's")
    load.add_argument("--commits", type=count, metavar="N", help="length of the history")
    load.add_argument("--every", type=count, default=100, metavar="100", help="commits per line")
    load.add_argument("--passes", type=count, metavar="N", help="times that each gitk reads it")
    load.add_argument(
        "--touch", type=touch, metavar="F", help="earlier commits looked up for each one loaded"
    )
    load.add_argument("--repo", metavar="PATH", help="a real git repository instead of a made one")
    load.add_argument(
        "--music", metavar="PATH|rsync://…", help="the music (default: made, incompressible)"
    )
    load.add_argument("--fs", choices=("ext4", "ext3", "ext2", "xfs"), default="ext4")
    load.add_argument("--no-crypt", action="store_true", help="LVM without dm-crypt below it")

    machine = parser.add_argument_group("the machine")
    machine.add_argument("--accel", choices=("auto", "kvm", "tcg"), help="default: auto")
    machine.add_argument("--cpus", type=count, metavar="N", help="CPUs of the VM (default: 2)")
    machine.add_argument("--disk-iops", type=count, metavar="N", help="throttle of the VM's disk")
    machine.add_argument(
        "--disk-bps", type=size, metavar="N", help="bytes a second, for example 80M"
    )
    machine.add_argument("--timeout", type=count, metavar="S", help="end the run after S seconds")

    rest = parser.add_argument_group("the rest")
    rest.add_argument("--out", metavar="DIR", help="campaign folder (default: results/<time>)")
    rest.add_argument("--mirror", metavar="URL", help="Debian mirror (default: the host's own)")
    rest.add_argument(
        "--dry-run", action="store_true", help="say what would be done, touch nothing"
    )
    rest.add_argument(
        "--no-install", action="store_true", help="install nothing; say what is missing"
    )
    rest.add_argument(
        "--bare",
        action="store_true",
        help="with --device: measure only, with the standard library and pexpect; no live view, no "
        "pictures (what the VM runs inside)",
    )
    rest.add_argument(
        "--run-dir", metavar="DIR", help="with --bare: the folder of this run's own files"
    )
    return parser


def parse(argv: list[str]) -> Options:
    """Parse a command line; a usage error exits with status 2, as argparse does."""
    parser = build_parser()
    args = parser.parse_args(argv)
    if args.device is None:
        for option in ("destroy_data", "bare", "run_dir"):
            if getattr(args, option):
                parser.error(f"--{option.replace('_', '-')} goes with --device")
    else:
        for option in ("kernel", "memory", "disk_iops", "disk_bps", "accel", "cpus", "mirror"):
            if getattr(args, option) is not None:
                parser.error(f"--{option.replace('_', '-')} is for a VM, not for --device")
    if args.bare != (args.run_dir is not None):
        parser.error("--bare and --run-dir go together")
    if args.bare and args.dry_run:
        parser.error("--bare and --dry-run do not go together")
    if args.bare and not (args.repo and args.music):
        parser.error("--bare needs --repo and --music")
    if args.repo is not None and args.commits is not None:
        parser.error("--commits is for the made history, not for --repo")

    profile = PROFILES[args.profile]
    memory = args.memory or profile.memory
    if memory < 128 << 20:
        parser.error("--memory: at least 128M")
    commits = args.commits or profile.commits
    parameters = Parameters(
        profile=args.profile,
        gitk=args.gitk,
        commits=0 if args.repo else commits,
        every=args.every,
        passes=args.passes or profile.passes,
        touch=profile.touch if args.touch is None else args.touch,
        memory=0 if args.device else memory,
        history="made" if args.repo is None else "repo",
        fs=args.fs,
        crypt=not args.no_crypt,
    )
    return Options(
        kernel=args.kernel or "debian:stable",
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
        repo=args.repo,
        music=args.music,
        mirror=args.mirror,
        out=args.out,
        label=args.label,
        dry_run=args.dry_run,
        install=not args.no_install,
        parameters=parameters,
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
