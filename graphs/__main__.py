# SPDX-License-Identifier: GPL-2.0-or-later
"""Pictures and summary of results, for one or many kernels.

usage: python3 -m graphs DIR [-o REPORT]

Reads the results in DIR (a campaign, or one run) and writes into DIR/report: gitk-latency.png and
gitk-latency-smooth.png with their .gp and .dat (change them, then `gnuplot gitk-latency.gp` there),
timeline-VARIANT-N.png for each run, and summary.txt. Prints the paths that it wrote.
"""

import argparse
import sys
from pathlib import Path

from analysis.load import Campaign, load_campaign
from analysis.summary import summary
from analysis.words import plain
from graphs import classical, timeline
from setup.errors import UserError, run_command


def make_report(campaign: Campaign, report: Path) -> tuple[list[Path], list[str]]:
    """Write the summary and every picture; the paths written, and notes on what is not among them.

    UserError if the folder cannot be written or gnuplot is missing: the rest is then there.
    """
    text = summary(campaign)
    notes = [f"incomplete, left out: {plain(name)}" for name in campaign.incomplete]
    try:
        report.mkdir(parents=True, exist_ok=True)
        made = [report / "summary.txt"]
        made[0].write_text(text, encoding="utf-8")
        made += _timelines(campaign, report, notes)
        # Last: without gnuplot everything else is there.
        made += classical.draw(campaign, report, notes)
    except OSError as error:
        raise UserError(f"{error.filename or report}: {error.strerror}") from error
    return made, notes


def _timelines(campaign: Campaign, report: Path, notes: list[str]) -> list[Path]:
    made: list[Path] = []
    for variant, runs in campaign.variants().items():
        for run in runs:
            path = report / timeline.file_name(run)
            if path in made:  # two variants' names differ in what a file name cannot hold
                path = path.with_stem(f"{path.stem}-{len(made)}")
            drawn = timeline.draw(run, path, len(runs))
            if drawn is None:
                notes.append(f"{plain(variant, 60)} run {run.number}: no data, no timeline")
            else:
                made.append(drawn)
    return made


def main(arguments: list[str] | None = None) -> int:
    """Make the report of a folder of results."""
    parser = argparse.ArgumentParser(prog="python3 -m graphs", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("dir", type=Path, help="a campaign's folder, or one run's")
    parser.add_argument("-o", "--out", type=Path, help="the report's folder (DIR/report)")
    options = parser.parse_args(arguments)
    campaign = load_campaign(options.dir)
    made, notes = make_report(campaign, options.out or options.dir / "report")
    for path in made:
        print(path)
    for note in notes:
        print(f"graphs: {note}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(run_command("graphs", main))
