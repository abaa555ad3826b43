# SPDX-License-Identifier: GPL-2.0-or-later
"""Makes the report of results: verdicts, pictures, an interactive page and a bundle to attach.

usage: python3 -m graphs DIR|BUNDLE [-o REPORT] [--baseline LABEL] [--force] [--timelines few|all]
                          [--fail-on WORD,…]
       python3 -m graphs --trend DIR|BUNDLE... [-o REPORT] [--by version|date] [--metric KEY]
       python3 -m graphs --check BUNDLE

The input is a campaign's folder, a run's folder or a bug-report.tar.gz. The report is written to
DIR/report (for a bundle: to NAME-report beside it), and the paths of its files are printed:
  summary.txt, details.txt            the results as text
  compare.txt, .csv, .json            the comparison of the variants
  junit.xml                           the verdicts, for a CI system
  meanwhile.txt                       figures that the workload printed during the runs
  comparison.png                      the verdicts as a picture
  over-time.png, over-time-2.png …    diagrams over time that the workload defines
  causes.json, causes.png             the causes of the stalls, if evidence was recorded
  timeline-VARIANT-N.png              one run's stalls and counters over time
  gitk-latency.png                    the gap before each line; also as gitk-latency-smooth.png.
                                      To change these pictures, edit the .gp and .dat files and run
                                      `gnuplot gitk-latency.gp` in the folder.
  index.html                          the interactive page
  bug-report.tar.gz                   the bundle
  mail.txt                            a report for linux-mm, if a newer kernel regressed
                                      (docs/guides/report-upstream.md)
For other workloads than the desktop, gitk-latency is called sawtooth. If there are several
workloads, all names except those of the timelines also contain the workload's name. In each run's
folder of DIR, allocation-failures.log lists the failed page allocations, including those that the
kernel does not log.

--trend writes only trend.png, trend.txt and trend.json, for all DIRs together
(docs/reference/trend.md). For several DIRs, name the folder with -o.
--check compares the files of a bundle with its manifest. If files differ, it prints a line for each
of them, and the exit status is 3.

exit status: 0 the report is complete, 2 usage error, 3 something is missing or cannot be compared,
5 there is a verdict or a failed run that --fail-on names, 130 interrupted
(docs/reference/exit-statuses.md).
"""

import argparse
import re
import sys
from pathlib import Path

from analysis.reading.load import load_campaign
from analysis.reading.words import safe_line
from analysis.trends.options import add_choices
from analysis.trends.trend import find_trend
from analysis.verdicts.choice import LISTED_RUNS
from analysis.verdicts.pool import load_pool
from contract import values
from contract.run_files import REPORT
from errors import Exit, UserError, run_command
from graphs import trend_report
from graphs.bundle import manifest
from graphs.report import make_report


def check(path: Path) -> int:
    """Compare a bundle with its manifest; returns the exit status."""
    problems = manifest.check(path)
    for problem in problems:
        print(f"graphs: {path}: {safe_line(problem)}", file=sys.stderr)
    if not problems:
        print(f"{path}: every file is as the manifest says")
        for remark in manifest.remarks(path):
            print(f"{path}: {safe_line(remark)}")
    return int(Exit.MISSING) if problems else int(Exit.OK)


def _beside(path: Path) -> Path:
    """The default folder for the report of these results.

    UserError if it is a link: otherwise the sender of the results could choose where we write.
    """
    if not path.is_file():
        if (path / REPORT).is_symlink():
            raise UserError(f"{path / REPORT}: is a link, not followed", hint="name a folder: -o")
        return path / REPORT
    folder = path.with_name(re.sub(r"\.(tar\.gz|tgz)\Z", "", path.name) + "-report")
    print(f"graphs: the report goes to {folder}", file=sys.stderr)
    return folder


def _trend(asked: argparse.Namespace) -> int:
    pooled = load_pool(asked.dir, force=asked.force)
    trend = find_trend(pooled, order=asked.by, metric=asked.metric, force=asked.force)
    for path in trend_report.write(trend, asked.out or _beside(asked.dir[0])):
        print(path)
    return 0


def main(arguments: list[str] | None = None) -> int:
    """Make the report of results, or check a bundle."""
    parser = argparse.ArgumentParser(prog="python3 -m graphs", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument(
        "dir", type=Path, nargs="*", help="a campaign's folder, one run's, or a bug-report.tar.gz"
    )
    parser.add_argument("-o", "--out", type=Path, help="the report's folder (DIR/report)")
    parser.add_argument("--baseline", metavar="LABEL", help="compare with this variant")
    parser.add_argument(
        "--force", action="store_true", help="compare runs that differ in a key fact; marked"
    )
    parser.add_argument(
        "--timelines",
        choices=("few", "all"),
        default="few",
        help=f"few: of each run, of more than {LISTED_RUNS} runs only of some (default)",
    )
    parser.add_argument(
        "--fail-on",
        type=values.fail_on,
        default=(),
        metavar="WORD,…",
        help=f"end with status 5 if a verdict is one of these: {', '.join(values.FAIL_ON)}",
    )
    parser.add_argument("--check", type=Path, metavar="BUNDLE", help="verify a bundle's manifest")
    parser.add_argument(
        "--trend", action="store_true", help="draw the trend of all kernels of all DIRs, only"
    )
    add_choices(parser)
    asked = parser.parse_args(arguments)
    if (asked.check is None) == (not asked.dir):
        parser.error("give either DIR or --check BUNDLE")
    if asked.check is not None:
        return check(asked.check)
    if len(asked.dir) > 1 and not asked.trend:
        parser.error("a report is of one DIR: several go with --trend")
    if asked.trend:
        if len(asked.dir) > 1 and asked.out is None:
            parser.error("the trend of several DIRs is in none of them: say where with -o REPORT")
        return _trend(asked)
    (folder,) = asked.dir
    campaign = load_campaign(folder)
    report = make_report(
        campaign,
        asked.out or _beside(folder),
        baseline=asked.baseline,
        force=asked.force,
        timelines=asked.timelines,
        fail_on=asked.fail_on,
    )
    for path in report.made:
        print(path)
    for note in [*report.notes, *map(str, report.errors[1:])]:
        print(f"graphs: {note}", file=sys.stderr)
    if report.errors:
        raise report.errors[0]
    for line in report.unwanted:
        print(f"graphs: --fail-on: {line}", file=sys.stderr)
    return int(Exit.FAILED_ON if report.unwanted else Exit.OK)


if __name__ == "__main__":
    sys.exit(run_command("graphs", main))
