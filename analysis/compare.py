# SPDX-License-Identifier: GPL-2.0-or-later
"""Which kernel stalls more: a campaign's variants against its baseline, and how sure that is.

usage: python3 -m analysis.compare DIR|BUNDLE... [--baseline LABEL] [--csv|--json] [--force]

Several folders or bundles are pooled if their facts agree (docs/CAMPAIGNS.md). docs/VERDICTS.md
tells what a verdict means and how often it errs.
"""

import argparse
import os
import sys
from pathlib import Path

from analysis.text import compare_text
from analysis.verdicts import export
from analysis.verdicts.compare import compare
from analysis.verdicts.pool import load_pool
from errors import run_command


def main(arguments: list[str] | None = None) -> int:
    """Print the verdicts of a folder of results or a bundle."""
    parser = argparse.ArgumentParser(prog="python3 -m analysis.compare", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument(
        "dir", type=Path, nargs="+", help="a campaign's folder, or a bug-report.tar.gz"
    )
    parser.add_argument("--baseline", metavar="LABEL", help="compare with this variant")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--csv", action="store_true", help="a row for each variant and metric")
    form.add_argument("--json", action="store_true", help="everything; `sure`: all have a verdict")
    parser.add_argument("--force", action="store_true", help="compare runs of differing machines")
    parser.add_argument("--colour", choices=("auto", "always", "never"), default="auto")
    asked = parser.parse_args(arguments)
    compared = compare(
        load_pool(asked.dir, force=asked.force), baseline=asked.baseline, force=asked.force
    )
    if asked.csv:
        sys.stdout.write(export.csv_text(compared))
    elif asked.json:
        sys.stdout.write(export.json_text(compared))
    else:
        colour = asked.colour == "always" or (
            asked.colour == "auto" and sys.stdout.isatty() and "NO_COLOR" not in os.environ
        )
        sys.stdout.write(compare_text.text(compared, colour=colour))
    return 0


if __name__ == "__main__":
    sys.exit(run_command("analysis.compare", main))
