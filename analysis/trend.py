# SPDX-License-Identifier: GPL-2.0-or-later
"""Where a metric changed from kernel to kernel, with one error rate however many kernels come.

usage: python3 -m analysis.trend DIR|BUNDLE... [--by version|date] [--metric KEY] [--json]

docs/reference/trend.md tells how a change is found, how often that errs, and how soon it finds one.
"""

import argparse
import sys
from pathlib import Path

from analysis.text import trend as trend_text
from analysis.text.layout import wants_colour
from analysis.trends import export
from analysis.trends.options import add_choices, add_fail_on, fail_status
from analysis.trends.trend import find_trend
from analysis.verdicts.pool import load_pool
from errors import run_command


def main(arguments: list[str] | None = None) -> int:
    """Print the trend of folders of results or bundles."""
    parser = argparse.ArgumentParser(prog="python3 -m analysis.trend", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument(
        "dir", type=Path, nargs="+", help="campaigns' folders, or a bug-report.tar.gz of each"
    )
    add_choices(parser)
    parser.add_argument("--json", action="store_true", help="points and changes, unrounded")
    parser.add_argument("--force", action="store_true", help="pool runs of differing machines")
    parser.add_argument("--colour", choices=("auto", "always", "never"), default="auto")
    add_fail_on(parser)
    asked = parser.parse_args(arguments)
    pooled = load_pool(asked.dir, force=asked.force)
    trend = find_trend(pooled, order=asked.by, metric=asked.metric, force=asked.force)
    if asked.json:
        sys.stdout.write(export.json_text(trend))
    else:
        colour = wants_colour(asked.colour)
        sys.stdout.write(trend_text.text(trend, colour=colour))
    return fail_status(trend, asked.fail_on)


if __name__ == "__main__":
    sys.exit(run_command("analysis.trend", main))
