# SPDX-License-Identifier: GPL-2.0-or-later
"""Results as plain text of at most 75 columns, ready to paste into a mail.

usage: python3 -m analysis.summary DIR|BUNDLE [--all] [--baseline LABEL]

Of one run it says what was measured, not whether a kernel is better: one run is a sign, not a
finding. Of a campaign it prints the verdicts and a line for each run; with --all each run.
"""

import argparse
import sys
from pathlib import Path

from analysis.reading.load import load_campaign
from analysis.text.summary_files import details, summary, try_compare
from errors import run_command


def main(arguments: list[str] | None = None) -> int:
    """Print the summary of a folder of results."""
    parser = argparse.ArgumentParser(prog="python3 -m analysis.summary", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("dir", type=Path, help="a campaign's folder, one run's, or a bundle")
    parser.add_argument("--all", action="store_true", help="each run of a campaign in detail")
    parser.add_argument("--baseline", metavar="LABEL", help="compare with this variant")
    options = parser.parse_args(arguments)
    campaign = load_campaign(options.dir)
    if options.all:
        text = details(campaign, everything=True)
    elif len(campaign.runs) > 1:
        text = summary(campaign, try_compare(campaign, options.baseline))
    else:
        text = summary(campaign)
    sys.stdout.write(text)
    return 0


if __name__ == "__main__":
    sys.exit(run_command("analysis.summary", main))
