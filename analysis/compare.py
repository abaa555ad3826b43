# SPDX-License-Identifier: GPL-2.0-or-later
"""Which kernel stalls more: a campaign's variants against its baseline, and how sure that is.

usage: python3 -m analysis.compare DIR|BUNDLE... [--baseline LABEL] [--csv|--json|--junit]
                                   [--force] [--fail-on WORD,…]

Several folders or bundles are pooled if their facts agree (docs/guides/compare-kernels.md).
docs/explain/verdicts.md tells what a verdict means and how often it errs,
docs/reference/compare-json.md every field of the JSON.

exit status: 0 compared, whatever the verdicts are, 2 usage, 3 something is missing or cannot be
compared, 5 a verdict or a failed run that --fail-on names, 130 interrupted.
"""

import argparse
import sys
from pathlib import Path

from analysis.text import compare_text
from analysis.text.layout import wants_colour
from analysis.verdicts import export, junit
from analysis.verdicts.compare import compare
from analysis.verdicts.fail_on import unwanted
from analysis.verdicts.pool import load_pool
from contract import values
from contract.checkout import ShowVersion
from errors import Exit, run_command


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
    form.add_argument("--junit", action="store_true", help="JUnit's XML, for a CI to show")
    parser.add_argument(
        "--fail-on",
        type=values.fail_on,
        default=(),
        metavar="WORD,…",
        help=f"end with status 5 if a verdict is one of these: {', '.join(values.FAIL_ON)}",
    )
    parser.add_argument("--force", action="store_true", help="compare runs of differing machines")
    parser.add_argument("--version", action=ShowVersion)
    parser.add_argument("--colour", choices=("auto", "always", "never"), default="auto")
    options = parser.parse_args(arguments)
    compared = compare(
        load_pool(options.dir, force=options.force), baseline=options.baseline, force=options.force
    )
    if options.csv:
        sys.stdout.write(export.csv_text(compared))
    elif options.json:
        sys.stdout.write(export.json_text(compared))
    elif options.junit:
        sys.stdout.write(junit.text(compared, options.fail_on))
    else:
        colour = wants_colour(options.colour)
        sys.stdout.write(compare_text.text(compared, colour=colour))
    reasons = unwanted(compared, options.fail_on)
    for line in reasons:
        print(f"analysis.compare: --fail-on: {line}", file=sys.stderr)
    return int(Exit.FAILED_ON if reasons else Exit.OK)


if __name__ == "__main__":
    sys.exit(run_command("analysis.compare", main))
