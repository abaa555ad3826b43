# SPDX-License-Identifier: GPL-2.0-or-later
"""The report of results: every file of it, written into one folder."""

import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from analysis.reading.load import Campaign, Run
from analysis.reading.processes import done_to_each
from analysis.reading.words import plain, plural
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


LIST = ".made-by-graphs"  # in the report: the names of what is ours in it


FORKS = 4  # timelines, from which on further processes pay off


@dataclass
class Report:
    """What came of it: the files, what is not among them, and what went wrong."""

    folder: Path
    made: list[Path] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    errors: list[UserError] = field(default_factory=list)
    unwanted: list[str] = field(default_factory=list)  # what --fail-on named and is there

    def add(self, make: Callable[[], list[Path]]) -> None:
        """Add the files; an error does not keep the rest from being made."""
        try:
            self.made += make()
        except UserError as error:
            self.errors.append(error)

    def write(self, name: str, text: str) -> None:
        """Write one of the texts; an empty one is none."""
        if text:
            path = self.folder / name
            path.write_text(text, encoding="utf-8", newline="\n")
            self.made.append(path)


@dataclass(frozen=True)
class Part:
    """The runs of one workload, its variants in order, and what its pictures' names end with."""

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
    """Write everything into folder. What can be made is made, whatever the errors.

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
    """Says on stderr what is done now, if the runs are so many that it takes a while."""

    def say(doing: str) -> None:
        if len(campaign.runs) > LISTED_RUNS:
            print(f"graphs: {doing} …", file=sys.stderr, flush=True)

    return say


def _parts(campaign: Campaign, judged: Compared | UserError, baseline: str | None) -> list[Part]:
    if isinstance(judged, UserError):
        return [Part("", campaign, in_order(campaign, baseline))]
    each = zip(names.suffixes(judged), judged.each, strict=True)
    return [Part(suffix, one.campaign, one.variants) for suffix, one in each]


def _add_verdicts(report: Report, judged: Compared, fail_on: Sequence[str]) -> None:
    """The comparison as texts, tables and pictures."""
    report.write("compare.txt", compare_text.text(judged))
    report.write("compare.csv", export.csv_text(judged))
    report.write("compare.json", export.json_text(judged))
    report.write("junit.xml", junit.text(judged, fail_on))
    try:
        report.unwanted = unwanted(judged, fail_on)
    except UserError as error:
        report.errors.append(error)
    for suffix, one in zip(names.suffixes(judged), judged.each, strict=True):
        report.made.append(comparison.draw(one, report.folder / f"comparison{suffix}.png"))
        if picture := stalled_by_cause.draw(one, report.folder / f"causes{suffix}.png"):
            report.made.append(picture)
    report.write(export.CAUSES_JSON, export.causes_json(judged))


def _add_pictures(
    report: Report,
    campaign: Campaign,
    parts: Sequence[Part],
    timelines: str,
    say: Callable[[str], None],
) -> None:
    """The pictures of runs: over time, timelines, sawteeth."""
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
    _tidy(report)  # no picture of an earlier report goes into this one's bundle
    say("packing the bundle")
    report.add(lambda: _bundle(judged, report.folder, report.notes))


def _bundle(judged: Compared, folder: Path, notes: list[str]) -> list[Path]:
    """The bundle, and the mail that is in it; if there is none a note that says why."""
    path = bundle.write(judged, folder)
    found = bundle.write_mail(path, folder)
    if found:
        notes.append(f"{MAIL}: replace {SUITE_URL} and {BUNDLE_URL} in it before you send it")
    elif isinstance(why := bundle.letter_of(judged), str):
        notes.append(f"no {MAIL}: {why} (report.txt in {NAME} can be sent)")
    return [path, *found]


def _over_time(part: Part, folder: Path) -> list[Path]:
    """What the workload lets be drawn, of the median run of each variant."""
    by_variant = part.campaign.variants()
    found = medians(part.campaign, part.variants)
    runs = [(run, len(by_variant[variant])) for variant, run in found.items()]
    return over_time.draw(runs, {run.variant: run.label for run, _ in runs}, folder, part.suffix)


def _is_there(campaign: Campaign, label: str) -> bool:
    return any(label in (run.variant, run.label) for run in campaign.runs)


def timeline_runs(part: Part, which: str) -> list[Run]:
    """The runs that have a timeline: all, or of many the median runs of the extreme variants."""
    by_variant = part.campaign.variants()
    if which == "all" or len(part.campaign.runs) <= LISTED_RUNS:
        return [run for variant in part.variants for run in by_variant[variant]]
    found = medians(part.campaign, part.variants)
    return [found[variant] for variant in extremes(found)]


def _timelines(campaign: Campaign, runs: list[Run], folder: Path, notes: list[str]) -> list[Path]:
    """Draw them, in several processes if they are many."""
    counts = {variant: len(each) for variant, each in campaign.variants().items()}
    paths: list[Path] = []
    for run in runs:
        path = folder / timeline.file_name(run)
        if path in paths:  # two variants' names differ in what a file name cannot hold
            path = path.with_stem(f"{path.stem}-{len(paths)}")
        paths.append(path)
    each = [(run, path, counts[run.variant]) for run, path in zip(runs, paths, strict=True)]
    drawn = done_to_each(each, lambda one: timeline.draw(*one), FORKS, at_once=1)
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
