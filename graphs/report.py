# SPDX-License-Identifier: GPL-2.0-or-later
"""Writes the report of results: all its files, into one folder."""

import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from analysis.reading.load import Campaign, Run
from analysis.reading.processes import done_to_each
from analysis.reading.words import plural, safe_line
from analysis.text import compare_text, meanwhile
from analysis.text.campaign_summary import left_out
from analysis.text.summary_files import details, summary, try_compare
from analysis.verdicts import cause_table, export, junit
from analysis.verdicts.choice import LISTED_RUNS, extremes, in_order, medians
from analysis.verdicts.compared import Compared
from analysis.verdicts.fail_on import unwanted
from errors import UserError
from graphs import allocation_failures
from graphs.bug_report.mail import BUNDLE_URL, SUITE_URL
from graphs.bug_report.mail import NAME as MAIL
from graphs.bundle import bundle
from graphs.bundle.shape import NAME
from graphs.page import page
from graphs.pictures import classical, comparison, names, over_time, stalled_by_cause, timeline

OWN = re.compile(  # names of a report's files
    r"timeline-[A-Za-z0-9._+-]+\.png|"
    rf"{names.OWN.pattern}|"
    r"(summary|details|compare|meanwhile|mail)\.txt|compare\.csv|"
    r"(compare|causes)\.json|junit\.xml|index\.html|bug-report\.tar\.gz"
)


LIST = ".made-by-graphs"  # in the report's folder: lists the files that we made


FORKS = 4  # from so many timelines on further processes pay off


@dataclass
class Report:
    """The result: files made, notes about omissions, and errors."""

    folder: Path
    made: list[Path] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    errors: list[UserError] = field(default_factory=list)
    unwanted: list[str] = field(
        default_factory=list
    )  # lines about what --fail-on named and is present

    def add(self, make: Callable[[], list[Path]]) -> None:
        """Add the files that make() makes; after an error the rest is still made."""
        try:
            self.made += make()
        except UserError as error:
            self.errors.append(error)

    def write(self, name: str, text: str) -> None:
        """Write a text file, unless the text is empty."""
        if text:
            path = self.folder / name
            path.write_text(text, encoding="utf-8", newline="\n")
            self.made.append(path)


@dataclass(frozen=True)
class Part:
    """The runs of a workload, its variants in order, and the suffix of its pictures' names."""

    suffix: str
    campaign: Campaign
    variants: list[str]


def make_report(
    campaign: Campaign,
    folder: Path,
    *,
    baseline: str | None = None,
    force: bool = False,
    timelines: str = "few",
    fail_on: Sequence[str] = (),
) -> Report:
    """Write everything into folder. After errors the remaining files are still made.

    UserError if no run is complete, there is no such baseline, or the folder cannot be written.
    """
    say = _progress(campaign)
    say("looking for the causes")
    causes = cause_table.collect(campaign)
    say(f"comparing {plural(len(campaign.runs), 'run')}")
    judged = try_compare(campaign, baseline, force, causes)
    text = summary(campaign, judged, causes)
    if isinstance(judged, UserError) and baseline is not None and not _is_there(campaign, baseline):
        raise judged
    report = Report(folder, notes=list(left_out(campaign)))
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _unlink_links(folder)
        report.write("summary.txt", text)
        allocation_failures.write(campaign, report.notes)
        if len(campaign.runs) > 1:
            say("writing the texts")
            report.write("details.txt", details(campaign, causes=causes))
        report.write("meanwhile.txt", meanwhile.text(campaign))
        if isinstance(judged, Compared):
            _add_verdicts(report, judged, fail_on)
        else:
            report.errors.append(judged)
        _add_pictures(report, campaign, _parts(campaign, judged, baseline), timelines, say)
        if isinstance(judged, Compared):
            _add_page_and_bundle(report, judged, say)
        _tidy(report)
    except OSError as error:
        raise UserError(f"{error.filename or folder}: {error.strerror}") from error
    return report


def _progress(campaign: Campaign) -> Callable[[str], None]:
    """A function that prints the current step on stderr, if there are many runs."""

    def say(doing: str) -> None:
        if len(campaign.runs) > LISTED_RUNS:
            print(f"graphs: {doing} …", file=sys.stderr, flush=True)

    return say


def _parts(campaign: Campaign, judged: Compared | UserError, baseline: str | None) -> list[Part]:
    if isinstance(judged, UserError):
        return [Part("", campaign, in_order(campaign, baseline))]
    suffixed = zip(names.suffixes(judged), judged.each, strict=True)
    return [Part(suffix, part.campaign, part.variants) for suffix, part in suffixed]


def _add_verdicts(report: Report, judged: Compared, fail_on: Sequence[str]) -> None:
    """Add the comparison as texts, tables and pictures."""
    report.write("compare.txt", compare_text.text(judged))
    report.write("compare.csv", export.csv_text(judged))
    report.write("compare.json", export.json_text(judged))
    report.write("junit.xml", junit.text(judged, fail_on))
    try:
        report.unwanted = unwanted(judged, fail_on)
    except UserError as error:
        report.errors.append(error)
    for suffix, part in zip(names.suffixes(judged), judged.each, strict=True):
        report.made.append(comparison.draw(part, report.folder / f"comparison{suffix}.png"))
        if picture := stalled_by_cause.draw(part, report.folder / f"causes{suffix}.png"):
            report.made.append(picture)
    report.write(export.CAUSES_JSON, export.causes_json(judged))


def _add_pictures(
    report: Report,
    campaign: Campaign,
    parts: Sequence[Part],
    timelines: str,
    say: Callable[[str], None],
) -> None:
    """Add the pictures of runs: over time, timelines, sawteeth."""
    for part in parts:
        report.made += _over_time(part, report.folder)
    runs = [run for part in parts for run in timeline_runs(part, timelines)]
    say(f"drawing {plural(len(runs), 'timeline')}")
    report.made += _timelines(campaign, runs, report.folder, report.notes)
    say("drawing the sawtooth")
    sources = [
        path
        for part in parts
        for path in classical.write(
            part.campaign, part.variants, report.folder, report.notes, part.suffix
        )
    ]
    report.add(lambda: classical.draw(sources))
    report.made += sources


def _add_page_and_bundle(report: Report, judged: Compared, say: Callable[[str], None]) -> None:
    say("writing the page")
    report.add(lambda: [page.write(judged, report.folder / "index.html")])
    _tidy(report)  # so that no picture of an earlier report gets into this bundle
    say("packing the bundle")
    report.add(lambda: _bundle(judged, report.folder, report.notes))


def _bundle(judged: Compared, folder: Path, notes: list[str]) -> list[Path]:
    """Write the bundle, and the mail in it; if it has none, add a note that says why."""
    path = bundle.write(judged, folder)
    mails = bundle.write_mail(path, folder)
    if mails:
        notes.append(f"{MAIL}: replace {SUITE_URL} and {BUNDLE_URL} in it before you send it")
    elif isinstance(why := bundle.letter_of(judged), str):
        notes.append(f"no {MAIL}: {why} (report.txt in {NAME} can be sent)")
    return [path, *mails]


def _over_time(part: Part, folder: Path) -> list[Path]:
    """Draw the workload's own diagrams, for the median run of each variant."""
    by_variant = part.campaign.variants()
    median_runs = medians(part.campaign, part.variants)
    runs = [(run, len(by_variant[variant])) for variant, run in median_runs.items()]
    return over_time.draw(runs, {run.variant: run.label for run, _ in runs}, folder, part.suffix)


def _is_there(campaign: Campaign, label: str) -> bool:
    return any(label in (run.variant, run.label) for run in campaign.runs)


def timeline_runs(part: Part, which: str) -> list[Run]:
    """The runs that get a timeline: all, or of many the median runs of the extreme variants."""
    by_variant = part.campaign.variants()
    if which == "all" or len(part.campaign.runs) <= LISTED_RUNS:
        return [run for variant in part.variants for run in by_variant[variant]]
    median_runs = medians(part.campaign, part.variants)
    return [median_runs[variant] for variant in extremes(median_runs)]


def _timelines(campaign: Campaign, runs: list[Run], folder: Path, notes: list[str]) -> list[Path]:
    """Draw timelines of these runs, in several processes if there are many."""
    counts = {variant: len(each) for variant, each in campaign.variants().items()}
    paths: list[Path] = []
    for run in runs:
        path = folder / timeline.file_name(run)
        if path in paths:  # two variants' names may differ only in replaced characters
            path = path.with_stem(f"{path.stem}-{len(paths)}")
        paths.append(path)
    each = [(run, path, counts[run.variant]) for run, path in zip(runs, paths, strict=True)]
    drawn = done_to_each(each, lambda job: timeline.draw(*job), FORKS, at_once=1)
    for run, made in zip(runs, drawn, strict=True):
        if made is None:
            notes.append(f"{safe_line(run.variant, 60)} run {run.number}: no data, no timeline")
    if len(runs) < len(campaign.runs):
        of_all = f"{len(runs)} of {len(campaign.runs):,}"
        notes.append(f"timelines of {of_all} runs drawn (--timelines all: of each)")
    return [path for path in drawn if path is not None]


def _unlink_links(folder: Path) -> None:
    """Remove links named like the report's files: writing would follow them out of the folder."""
    for path in folder.iterdir():
        if path.is_symlink() and (OWN.fullmatch(path.name) or path.name == LIST):
            path.unlink()


def _tidy(report: Report) -> None:
    """Remove files that an earlier report made and this report did not."""
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
