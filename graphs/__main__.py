# SPDX-License-Identifier: GPL-2.0-or-later
"""The report of results: verdicts, pictures, a page to explore and a bundle to attach.

usage: python3 -m graphs DIR|BUNDLE [-o REPORT] [--baseline LABEL] [--force] [--timelines few|all]
       python3 -m graphs --check BUNDLE

Reads a campaign or one run from a folder, or from a bug-report.tar.gz, and writes into DIR/report
(beside BUNDLE: NAME-report): summary.txt and details.txt; compare.txt, .csv and .json;
comparison.png; causes.png and causes.json, if there is evidence; timeline-VARIANT-N.png;
gitk-latency.png and gitk-latency-smooth.png with their .gp and .dat (change them, then
`gnuplot gitk-latency.gp` there); index.html; bug-report.tar.gz. Prints the paths that it wrote.
Into each run's folder of DIR goes allocation-failures.log: the page allocations that failed
there, those included that the kernel does not log.
--check compares a bundle's files with its manifest: status 3 and a line for each that differs.
"""

import argparse
import os
import re
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from analysis import cause_table, table
from analysis.choice import extremes, in_order, median_run
from analysis.compare import Compared
from analysis.load import Campaign, Run, load_campaign
from analysis.overview import LISTED_RUNS, left_out
from analysis.summary import details, summary, try_compare
from analysis.words import plain, plural
from graphs import (
    bundle,
    causes_file,
    causes_graph,
    classical,
    comparison,
    failed_allocations,
    page,
    timeline,
)
from setup.errors import Exit, UserError, run_command

OWN = re.compile(  # names of a report's files
    r"timeline-[A-Za-z0-9._+-]+\.png|gitk-latency(-smooth)?\.(gp|png)|gitk-latency-[0-9]+\.dat|"
    r"(comparison|causes)\.png|(summary|details|compare)\.txt|compare\.csv|"
    r"(compare|causes)\.json|index\.html|bug-report\.tar\.gz"
)
LIST = ".made-by-graphs"  # in the report: the names of what is ours in it
FORKS = 4  # timelines, from which on further processes pay off


@dataclass
class Report:
    """What came of it: the files, what is not among them, and what went wrong."""

    folder: Path
    made: list[Path] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    errors: list[UserError] = field(default_factory=list)

    def add(self, make: Callable[[], list[Path]]) -> None:
        """Add the files; an error does not keep the rest from being made."""
        try:
            self.made += make()
        except UserError as error:
            self.errors.append(error)

    def write(self, name: str, text: str) -> None:
        """Write one of the texts."""
        path = self.folder / name
        path.write_text(text, encoding="utf-8", newline="\n")
        self.made.append(path)


def make_report(
    campaign: Campaign,
    folder: Path,
    *,
    baseline: str | None = None,
    force: bool = False,
    timelines: str = "few",
) -> Report:
    """Write everything into folder. What can be made is made, whatever the errors.

    UserError if no run is complete, there is no such baseline, or the folder cannot be written.
    """
    many = len(campaign.runs) > LISTED_RUNS

    def say(doing: str) -> None:
        if many:
            print(f"graphs: {doing} …", file=sys.stderr, flush=True)

    say("looking for the causes")
    causes = cause_table.collect(campaign)
    say(f"comparing {plural(len(campaign.runs), 'run')}")
    judged = try_compare(campaign, baseline, force, causes)
    text = summary(campaign, judged, causes)
    if isinstance(judged, UserError) and baseline is not None and not _is_there(campaign, baseline):
        raise judged
    order = judged.variants if isinstance(judged, Compared) else in_order(campaign, baseline)
    report = Report(folder, notes=list(left_out(campaign)))
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _unlink_links(folder)
        report.write("summary.txt", text)
        failed_allocations.write(campaign, report.notes)
        if len(campaign.runs) > 1:
            say("writing the texts")
            report.write("details.txt", details(campaign, causes=causes))
        if isinstance(judged, Compared):
            report.write("compare.txt", table.text(judged))
            report.write("compare.csv", table.csv(judged))
            report.write("compare.json", table.json(judged))
            report.made.append(comparison.draw(judged, folder / "comparison.png"))
            if causes_json := causes_file.text(judged):
                report.write(causes_file.NAME, causes_json)
            if picture := causes_graph.draw(judged, folder / "causes.png"):
                report.made.append(picture)
        else:
            report.errors.append(judged)
        runs = _of_timelines(campaign, order, timelines)
        say(f"drawing {plural(len(runs), 'timeline')}")
        report.made += _timelines(campaign, runs, folder, report.notes)
        say("drawing the sawtooth")
        sources = classical.write(campaign, order, folder, report.notes)
        report.add(lambda: classical.draw(sources))
        report.made += sources
        if isinstance(judged, Compared):
            say("writing the page")
            report.add(lambda: [page.write(judged, folder / "index.html")])
            # No picture of an earlier report goes into this one's bundle.
            _tidy(report)
            say("packing the bundle")
            report.add(lambda: [bundle.write(judged, folder)])
        _tidy(report)
    except OSError as error:
        raise UserError(f"{error.filename or folder}: {error.strerror}") from error
    return report


def _is_there(campaign: Campaign, label: str) -> bool:
    return any(label in (run.variant, run.label) for run in campaign.runs)


def _of_timelines(campaign: Campaign, order: list[str], which: str) -> list[Run]:
    """The runs that have a timeline: all, or of many the median runs of the extreme variants."""
    by_variant = campaign.variants()
    if which == "all" or len(campaign.runs) <= LISTED_RUNS:
        return [run for variant in order for run in by_variant[variant]]
    medians = {one: run for one in order if (run := median_run(by_variant[one]))}
    return [medians[variant] for variant in extremes(medians)]


def _timelines(campaign: Campaign, runs: list[Run], folder: Path, notes: list[str]) -> list[Path]:
    """Draw them, in several processes if they are many."""
    counts = {variant: len(each) for variant, each in campaign.variants().items()}
    paths: list[Path] = []
    for run in runs:
        path = folder / timeline.file_name(run)
        if path in paths:  # two variants' names differ in what a file name cannot hold
            path = path.with_stem(f"{path.stem}-{len(paths)}")
        paths.append(path)
    numbers = [counts[run.variant] for run in runs]
    if len(runs) < FORKS:
        drawn = list(map(timeline.draw, runs, paths, numbers))
    else:
        with ProcessPoolExecutor(len(os.sched_getaffinity(0))) as pool:
            drawn = list(pool.map(timeline.draw, runs, paths, numbers))
    for run, made in zip(runs, drawn, strict=True):
        if made is None:
            notes.append(f"{plain(run.variant, 60)} run {run.number}: no data, no timeline")
    if len(runs) < len(campaign.runs):
        of_all = f"{len(runs)} of {len(campaign.runs):,}"
        notes.append(f"timelines of {of_all} runs drawn (--timelines all: of each)")
    return [path for path in drawn if path is not None]


def _unlink_links(folder: Path) -> None:
    """A link by one of the report's names would lead what is written out of the folder."""
    for path in folder.iterdir():
        if path.is_symlink() and (OWN.fullmatch(path.name) or path.name == LIST):
            path.unlink()


def _tidy(report: Report) -> None:
    """Remove what an earlier report made and this one did not."""
    listed = report.folder / LIST
    names = {path.name for path in report.made}
    try:
        before = listed.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        before = []
    for name in before:
        if name not in names and OWN.fullmatch(name):
            (report.folder / name).unlink(missing_ok=True)
    listed.write_text("".join(f"{name}\n" for name in sorted(names)), encoding="utf-8")


def check(path: Path) -> int:
    """Compare a bundle with its manifest; the exit status."""
    problems = bundle.check(path)
    for problem in problems:
        print(f"graphs: {path}: {plain(problem)}", file=sys.stderr)
    if not problems:
        print(f"{path}: every file is as the manifest says")
        for remark in bundle.remarks(path):
            print(f"{path}: {plain(remark)}")
    return int(Exit.MISSING) if problems else int(Exit.OK)


def _beside(path: Path) -> Path:
    """Where the report of these results goes, unless the user says where."""
    if not path.is_file():
        return path / "report"
    folder = path.with_name(re.sub(r"\.(tar\.gz|tgz)\Z", "", path.name) + "-report")
    print(f"graphs: the report goes to {folder}", file=sys.stderr)
    return folder


def main(arguments: list[str] | None = None) -> int:
    """Make the report of results, or check a bundle."""
    parser = argparse.ArgumentParser(prog="python3 -m graphs", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument(
        "dir", type=Path, nargs="?", help="a campaign's folder, one run's, or a bug-report.tar.gz"
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
    parser.add_argument("--check", type=Path, metavar="BUNDLE", help="verify a bundle's manifest")
    asked = parser.parse_args(arguments)
    if (asked.check is None) == (asked.dir is None):
        parser.error("give either DIR or --check BUNDLE")
    if asked.check is not None:
        return check(asked.check)
    campaign = load_campaign(asked.dir)
    report = make_report(
        campaign,
        asked.out or _beside(asked.dir),
        baseline=asked.baseline,
        force=asked.force,
        timelines=asked.timelines,
    )
    for path in report.made:
        print(path)
    for note in [*report.notes, *map(str, report.errors[1:])]:
        print(f"graphs: {note}", file=sys.stderr)
    if report.errors:
        raise report.errors[0]
    return 0


if __name__ == "__main__":
    sys.exit(run_command("graphs", main))
