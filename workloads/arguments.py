# SPDX-License-Identifier: GPL-2.0-or-later
"""The arguments of run_test.sh: the parser, its profiles, and how each value is read."""

import argparse
import re
from dataclasses import dataclass
from typing import NoReturn

EXAMPLES = """\
examples:
  ./run_test.sh                             Debian stable's kernel, 512 MiB, four gitk's, in a VM
  ./run_test.sh --profile quick             the same in two and a half minutes, with less of all
  ./run_test.sh --kernel debian:6.1 --kernel debian:7.2 --runs 5       compare two kernels
  ./run_test.sh --resume results/mine       go on with what was interrupted
  ./run_test.sh --resume results/mine --kernel debian:6.12             add a variant
  ./run_test.sh --plan plan.toml            variants with knobs (docs/CAMPAIGNS.md)
  ./run_test.sh --kernel debian:6.1 --kernel debian:7.2 --stop-when-sure 20
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


# What a value's function raises; plan.py reads values by the same functions.
Refused = argparse.ArgumentTypeError


def size(text: str) -> int:
    """Bytes of `512M`, `2G`, `80k` or `4096` (powers of 1,024)."""
    match = re.fullmatch(r"(\d+)([kKmMgGtT]?)(?:i?B)?", text)
    if not match or int(match[1]) == 0:
        raise Refused(f"not a size: {text!r} (for example 512M)")
    return int(match[1]) << {"": 0, "k": 10, "m": 20, "g": 30, "t": 40}[match[2].lower()]


def count(text: str) -> int:
    """A whole number of 1 or more."""
    if not re.fullmatch(r"\d{1,9}", text) or int(text) < 1:
        raise Refused(f"not a number of 1 or more: {text!r}")
    return int(text)


def rate(text: str) -> int:
    """Echoes a second: 1 to 10,000 (each waits up to 1 s for its reply, and 65,536 can be told)."""
    number = count(text)
    if number > 10_000:
        raise Refused(f"at most 10000: {text!r}")
    return number


def seconds_or_0(text: str) -> int:
    """A whole number of seconds; 0 stands for never."""
    return 0 if text == "0" else count(text)


def gitks(text: str) -> int:
    """How many gitk's: 1 to 16 (each stream needs a port of the guest's virtio-serial bus)."""
    number = count(text)
    if number > 16:
        raise Refused(f"at most 16: {text!r}")
    return number


def label(text: str) -> str:
    """A label names a folder: letters, digits, `.`, `_`, `+` and `-`, at most 64 of them."""
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,63}", text):
        raise Refused(f"not a label: {text!r} (letters, digits, '.', '_', '+', '-', at most 64)")
    return text


def touch(text: str) -> float:
    """A ratio from 0 to 100."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 100:
        raise Refused(f"not a number from 0 to 100: {text!r}")
    return value


def append(text: str) -> str:
    """Words for a kernel's command line: printable, on one line."""
    if not re.fullmatch(r"[ -~]{0,1000}", text):
        raise Refused(f"not for a command line: {text[:200]!r}")
    return " ".join(text.split())


def margin(text: str) -> float:
    """A ratio between 0 and 1."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 < value < 1:
        raise Refused(f"not a ratio between 0 and 1: {text!r} (for example 0.1)")
    return value


def knob(text: str) -> tuple[str, str]:
    """(path, value) of PATH=VALUE; the path is a file of /sys or /proc/sys."""
    path, equals, value = text.partition("=")
    inside = re.fullmatch(r"/(sys|proc/sys)/[\w./:@{}+-]+", path) and "/../" not in f"{path}/"
    if not (equals and inside and re.fullmatch(r"[ -~]{1,200}", value)):
        raise Refused(f"not a knob: {text[:200]!r} (for example /proc/sys/vm/swappiness=10)")
    return path, value


class Parser(argparse.ArgumentParser):
    """argparse's, with a usage error in one line; prefix says whose word it is about."""

    prefix = ""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {self.prefix}{message} (see --help)\n")


def build_parser() -> Parser:
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
        action="append",
        metavar="SPEC",
        help="debian:SUITE, debian:VERSION (debian:7.2), host, a bzImage or vmlinuz with its "
        "modules beside it, PATH,modules=DIR, or a kernel build tree (default: debian:stable); "
        "may be repeated",
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
    what.add_argument(
        "--label",
        type=label,
        action="append",
        help="name of the variant in graphs and folders; one for each --kernel",
    )
    what.add_argument(
        "--append",
        type=append,
        metavar="TEXT",
        help="more of the kernel's command line, for each --kernel here",
    )
    what.add_argument(
        "--knob",
        type=knob,
        action="append",
        metavar="PATH=VALUE",
        help="a file of /sys or /proc/sys to write before the workload ({disk}, {crypt}, {swap} "
        "and {fs} in PATH stand for the block devices' names); may be repeated",
    )

    many = parser.add_argument_group("a campaign: several variants, several runs")
    many.add_argument("--runs", type=count, metavar="N", help="runs of each variant (default: 1)")
    many.add_argument("--plan", metavar="FILE", help="variants and the rest from a plan.toml")
    many.add_argument(
        "--resume",
        metavar="DIR",
        help="go on with that campaign: what is complete stays, what is missing is run",
    )
    many.add_argument(
        "--stop-when-sure",
        type=count,
        metavar="N",
        help="go on until each comparison has a verdict, up to N runs of each variant",
    )
    many.add_argument("--baseline", type=label, help="the variant that the others are compared to")
    many.add_argument(
        "--margin", type=margin, metavar="R", help="ratio that still counts as equal (default: 0.1)"
    )

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

    load.add_argument(
        "--atomic-order",
        type=int,
        choices=(2, 3),
        help="add echoes whose replies need order-N atomic memory (docs/ATOMIC.md; no kernel from "
        "5.10 to 7.2 takes order 3 for them)",
    )
    load.add_argument(
        "--atomic-rate", type=rate, metavar="N", help="so many echoes a second (default: 100)"
    )

    machine = parser.add_argument_group("the machine")
    machine.add_argument("--accel", choices=("auto", "kvm", "tcg"), help="default: auto")
    machine.add_argument("--cpus", type=count, metavar="N", help="CPUs of the VM (default: 2)")
    machine.add_argument("--disk-iops", type=count, metavar="N", help="throttle of the VM's disk")
    machine.add_argument(
        "--disk-bps", type=size, metavar="N", help="bytes a second, for example 80M"
    )
    machine.add_argument("--timeout", type=count, metavar="S", help="end the run after S seconds")
    machine.add_argument(
        "--live-lock-after",
        type=seconds_or_0,
        metavar="S",
        help="end the run when all gitk's stand still for S seconds while the kernel does nothing "
        "but reclaim (default: 180; 0: never; not with --no-evidence, which leaves out who looks)",
    )

    rest = parser.add_argument_group("the rest")
    rest.add_argument("--out", metavar="DIR", help="campaign folder (default: results/<time>)")
    rest.add_argument("--mirror", metavar="URL", help="Debian mirror (default: the host's own)")
    rest.add_argument(
        "--no-evidence",
        action="store_true",
        help="without the observer that tells what silent programs wait for",
    )
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
