# SPDX-License-Identifier: GPL-2.0-or-later
"""nightly.sh's command line."""

import argparse
import sys
from pathlib import Path

from contract import values
from contract.command_line import Parser

EPILOG = """\
exit status:
  0 measured, and the last change of no track is a regression   2 usage
  3 a kernel could not be had or measured, or the nights cannot be compared
  5 the last change of a track is a regression                  130 interrupted
"""


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    """Parse the command line; exits with status 2 after a usage error."""
    parser = Parser(
        prog="./nightly.sh",
        description="Measure each kernel that no night in DIR has measured, in a folder of its own "
        "there, and print the trend over all nights; DIR/trend has its picture.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("dir", type=Path, metavar="DIR", help="where the nights are")
    parser.add_argument(
        "--kernel",
        action="append",
        default=[],
        metavar="SPEC",
        help="a kernel to follow, as run_test.sh takes it, any number of times (default: the "
        "newest of each series that Debian has: debian:6.1, debian:6.12 …)",
    )
    parser.add_argument(
        "--runs", type=values.count, default=5, metavar="N", help="of each new kernel (default: 5)"
    )
    parser.add_argument("--mirror", metavar="URL", help="Debian's mirror")
    parser.add_argument(
        "--dry-run", action="store_true", help="fetch the kernels, and say what would be measured"
    )
    parser.add_argument(
        "options",
        nargs="*",
        metavar="-- OPTION…",
        help="options of run_test.sh for every night (default: --profile quick)",
    )
    return parser.parse_args(arguments)


if __name__ == "__main__":
    parse()
    sys.exit(0)
