# SPDX-License-Identifier: GPL-2.0-or-later
"""The options of run_test.sh: one parser, its profiles, and the workload's parameters."""

import argparse
import re
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from setup.errors import Exit, UserError

EXAMPLES = """\
examples:
  ./run_test.sh                                   Debian stable's kernel, 512 MiB, four gitk's, in a VM
  ./run_test.sh --profile quick                   the same in two and a half minutes, with less of all
  ./run_test.sh --kernel debian:6.1 --out results/mine
  ./run_test.sh --kernel debian:7.2 --out results/mine      a second variant into the same graphs
  ./run_test.sh --kernel ~/linux                  a kernel build tree
  ./run_test.sh --kernel /boot/vmlinuz-6.12 --disk-iops 150 --disk-bps 80M
  ./run_test.sh --dry-run                         say what would be done, and do nothing
  sudo ./run_test.sh --device /dev/sdb5           on this machine, on that empty partition

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
    "quick": Profile(256 << 20, 60_000, 1, 600, 60, 1.0),
    "standard": Profile(512 << 20, 165_000, 1, 1_800, 120, 1.0),
    "full": Profile(512 << 20, 165_000, 4, 7_200, 120, 1.0),
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
