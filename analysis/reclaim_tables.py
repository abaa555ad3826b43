# SPDX-License-Identifier: GPL-2.0-or-later
"""The table of 2010 for any kernel: how often and how long page allocator and kswapd stalled.

usage: python3 -m analysis.reclaim_tables DIR

A line for each variant, the mean of its runs; docs/explain/causes.md has the columns and
which event of which kernel each is. A figure that a kernel cannot give is `-`, never 0.
"""

import argparse
import sys
from pathlib import Path

from analysis.reading.load import load_campaign
from analysis.text.reclaim_tables import tables
from errors import run_command


def main(arguments: list[str] | None = None) -> int:
    """Print both tables of a folder's runs."""
    parser = argparse.ArgumentParser(prog="python3 -m analysis.reclaim_tables", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("results", metavar="DIR", type=Path)
    options = parser.parse_args(arguments)
    variants = load_campaign(options.results).variants()
    labels = {runs[0].label: runs for runs in variants.values()}
    print("\n".join(tables(labels if len(labels) == len(variants) else variants)))
    sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(run_command("analysis.reclaim_tables", main))
