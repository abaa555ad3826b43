# SPDX-License-Identifier: GPL-2.0-or-later
"""report.txt: a bug report of at most 75 columns, which a mail may quote.

Its figures equal those of the table (analysis.text.verdict_table), with the same rounding. Quoted
text is redacted before the layout, so that lines keep their length.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from textwrap import wrap

from analysis.figures.metrics import BY_KEY, added_up, counted
from analysis.figures.stalls import worst
from analysis.reading.facts import on_disk
from analysis.reading.latency_log import number
from analysis.reading.load import Run, first_described
from analysis.reading.words import number_word, plural, plural_subject, safe_line, with_article
from analysis.text import compare_text, hosts, workload_tables
from analysis.text.layout import WIDTH, grid, paragraph
from analysis.text.machine import memory
from analysis.text.verdict_table import IN_REPORT, mean_and_sd, verdict_rows
from analysis.text.vmstat import TITLE
from analysis.verdicts.choice import medians, shown, shown_words, worst_subject
from analysis.verdicts.compared import Compared
from contract.workload import DESKTOP, STALLED
from graphs import allocation_failures
from graphs.bug_report import causes, facts, reproduce, vmstat
from graphs.bug_report.mail import BUNDLE_URL, SUITE_URL
from graphs.bug_report.mail import NAME as MAIL
from graphs.bug_report.sawtooth import round_up, sawtooth

DRAWN = 6  # variants whose sawtooth is drawn in the text
Clean = Callable[[str], str]
Section = tuple[str, Iterator[str]]  # heading, lines


@dataclass(frozen=True)
class Contents:
    """What the bundle contains of the campaign. Paths are relative to the bundle."""

    runs: frozenset[tuple[str, int]]  # variant, number
    total: int
    remarks: list[str] = field(default_factory=list)  # sentences about what it does not contain
    pictures: list[str] = field(default_factory=list)
    no_mail: str = ""  # why it has no mail.txt; empty if it has one


def build(compared: Compared, contents: Contents, clean: Clean) -> str:
    """The text; clean: redacts secrets in a text that is read from the results."""
    title = _title(compared)
    lines = [title, "=" * len(title), ""]
    reproduced = ("How to reproduce it", reproduce.command(compared))
    bundled = ("This bundle", _bundle(contents))
    if not compared.others:
        lines += [*_symptom(compared, clean), ""]
        lines += _laid_out(
            [
                *_found(compared, contents, clean),
                reproduced,
                *_facts(compared, clean),
                bundled,
            ]
        )
    else:
        lines += [*paragraph(compare_text.together(compared)), ""]
        for part in compared.each:
            lines += [part.workload.name, "=" * len(part.workload.name), ""]
            lines += [*_symptom(part, clean), ""]
            lines += _laid_out([*_found(part, contents, clean), *_facts(part, clean)])
        every = "All workloads"
        lines += [every, "=" * len(every), "", *_laid_out([reproduced, bundled])]
    return "\n".join(line.rstrip() for line in lines[:-1]) + "\n"


def _found(compared: Compared, contents: Contents, clean: Clean) -> list[Section]:
    """The sections about the results of one workload's runs."""
    drawn = shown(compared.campaign, compared.variants, DRAWN)
    return [
        ("Answer", _answer(compared)),
        ("Verdicts", _verdicts(compared)),
        ("What the workload measured", _measured(compared, drawn)),
        ("Why it stalled", causes.section(compared, drawn, clean)),
        (TITLE, vmstat.section(compared, drawn)),
        ("Sawtooth", _sawteeth(compared, drawn)),
        ("Where to look", facts.places(compared, drawn, contents.runs, clean)),
        ("Failed allocations", allocation_failures.section(compared)),
    ]


def _facts(compared: Compared, clean: Clean) -> list[Section]:
    """The sections about the runs' kernels, machine, workload and ends."""
    return [
        ("Kernels", facts.kernels(compared)),
        ("Machine and workload", facts.machine(compared)),
        ("How the runs ended", facts.ends(compared, clean)),
        ("Hosts", hosts.section(compared.campaign, compared.labels, WIDTH, named=False)),
        ("Notes", _notes(compared)),
    ]


def _laid_out(sections: list[Section]) -> Iterator[str]:
    for heading, section in sections:
        body = list(section)
        if body:
            yield from [heading, "-" * len(heading), *body, ""]


def _title(compared: Compared) -> str:
    if compared.others:
        names = ", ".join(one.workload.name for one in compared.each)
        return safe_line(f"Desktop freezes: {names}", WIDTH)
    labels = [safe_line(compared.labels[one], 30) for one in compared.variants]
    if len(labels) == 1:
        return safe_line(f"Desktop freezes: {labels[0]}", WIDTH)
    others = " and ".join(labels[1:]) if len(labels) <= 3 else f"{len(labels) - 1} variants"
    return safe_line(f"Desktop freezes: {others} against {labels[0]}", WIDTH)


def _symptom(compared: Compared, clean: Clean) -> Iterator[str]:
    runs = compared.campaign.runs
    first, subject = runs[0], compared.campaign.subject
    has = memory(runs)
    where = f"a machine with {has}" if has else "one machine"
    crypt = first.fact("crypt")
    if isinstance(crypt, str) and crypt != "none":
        where += f", its file system{' and swap' if all(map(on_disk, runs)) else ''} encrypted"
    count = f"{plural(len(runs), 'run')} of {plural(len(compared.variants), 'variant')}"
    scene = _scene(first_described(runs), where)
    yield from paragraph(
        f"{scene} Each run is a fresh boot. What somebody in front of it saw, in {count}:"
    )
    yield ""
    yield f"{'':<22} {'':>4} {'':>6} {'worst':>9} {'stalled seconds':>15} {'audio':>6} {'runs':>7}"
    yield (
        f"{'variant':<22} {'runs':>4} {'frozen':>6} {'silence':>9} {'a run':>15} {'skips':>6} "
        f"{'failed':>7}"
    )
    words = added_up(compared.workload)
    for variant in compared.variants:
        yield from _symptom_row(compared, variant)
    yield from paragraph(
        f"Frozen: the share of the time of the {plural_subject(subject)} in gaps of 1 s or more, "
        f"the mean of a run. Worst silence: the longest of any {subject} in any run (+ if it had "
        f"not ended). Stalled: the gaps of 1 s or more{words and f' of {words}'}; mean ±sd of the "
        "runs that ended. Audio skips: the mean of a run."
    )


def _scene(run: Run, where: str) -> str:
    """A sentence about the workload and the machine."""
    if run.workload.name != DESKTOP:
        summary = run.workload.summary or "a workload without a description"
        return f"{run.workload.name}: {summary}; on {where}."
    gitks = number(run.fact("parameters", "gitk"))
    programs = f"{number_word(int(gitks))} gitk's" if gitks else "gitk's"
    return (
        f"While {programs} read a long history and music plays on {where}, the programs fall "
        "silent for seconds at a time."
    )


def _symptom_row(compared: Compared, variant: str) -> Iterator[str]:
    runs = [run for run in compared.campaign.variants()[variant] if counted(run)]
    subjects = [stream for run in runs for stream in run.subjects]
    longest = max(subjects, key=worst, default=None)
    silence = "-"
    if longest is not None:
        unended = longest.open_gap == worst(longest) and not longest.ended
        silence = f"{worst(longest):,.1f} s{'+' if unended else ''}"
    sample, skips, share = (compared.samples[key][variant] for key in (STALLED, "skips", "share-1"))
    least = ">=" if share.failed else ""
    figures = (
        f"{len(sample.values):>4} "
        f"{'-' if share.mean is None else f'{least}{share.mean:.0f} %':>6} "
        f"{silence:>9} {mean_and_sd(BY_KEY[STALLED], sample):>15} "
        f"{'-' if skips.mean is None else f'{skips.mean:.1f}':>6} {sample.failed:>7}"
    )
    label = safe_line(compared.labels[variant], 60)
    if len(label) <= 22:
        yield f"{label:<22} {figures}"
    else:
        yield label
        yield f"{'':<22} {figures}"


def _answer(compared: Compared) -> Iterator[str]:
    for variant in compared.variants:
        yield from paragraph(safe_line(compared.sentences[variant], 1000), "  ")


def _verdicts(compared: Compared) -> Iterator[str]:
    if not compared.primary:
        return
    rows = [[safe_line(label, 60), *row] for label, *row in verdict_rows(compared, IN_REPORT)]
    yield from grid(rows, WIDTH, whole_names=True, least=0)
    yield from paragraph(
        f"Against {safe_line(compared.labels[compared.baseline], 60)}, by runs: median ratio of a "
        "run to a run, the ratios that the test does not reject, p of a permutation test after "
        f"Holm's correction. A verdict needs p <= {compared.level:.2g}; undecided does not mean "
        "that there is no difference. All metrics are in compare.txt."
    )


def _measured(compared: Compared, variants: list[str]) -> Iterator[str]:
    """The lines of the workload's tables."""
    lines = workload_tables.variant_lines(compared, variants or compared.variants[:DRAWN], WIDTH)
    next(lines, None)  # the empty line before the first
    yield from lines


def _sawteeth(compared: Compared, variants: list[str]) -> Iterator[str]:
    by_variant = compared.campaign.variants()
    drawn = medians(compared.campaign, variants)
    drawn_runs = [(run, len(by_variant[variant])) for variant, run in drawn.items()]
    if not drawn_runs:
        return
    streams = [worst_subject(run) for run, _ in drawn_runs]
    across = max(1.0, *(stream.until for stream in streams))
    up = round_up(max(worst(stream) for stream in streams))
    yield from paragraph(
        "Gap (s) against the time since the start of the workload (s), all on the same scales. "
        f"# rises while {with_article(compared.campaign.subject)} is silent"
        + (", ? is a silence that no line ended." if any(s.open_gap >= 1 for s in streams) else ".")
    )
    for (run, runs), stream in zip(drawn_runs, streams, strict=True):
        which = f", run {run.number} of {runs} (median)" if runs > 1 else ""
        yield ""
        yield safe_line(f"{safe_line(run.label, 30)}{which}, {safe_line(stream.name, 24)}", WIDTH)
        yield from sawtooth(
            stream.elapsed,
            stream.gap,
            last=stream.last,
            open_gap=stream.open_gap,
            across=across,
            up=up,
        )
    if words := shown_words(DRAWN, len(compared.variants), compared.metric):
        yield ""
        yield from paragraph(f"{words}.")


def _notes(compared: Compared) -> Iterator[str]:
    for fact in compared.forced:
        yield from paragraph(
            f"- FORCED (--force): these runs are not comparable: {safe_line(fact, 400)}.", "  "
        )
    for note in compared.notes:
        yield from paragraph(f"- {safe_line(note, 1200)}", "  ")


def _bundle(contents: Contents) -> Iterator[str]:
    held = len(contents.runs)
    runs = plural(held, "run") if held == contents.total else f"{held} of {contents.total} runs"
    yield from paragraph(
        f"bug-report.tar.gz holds the raw latency logs, counters and kernel logs of {runs}, the "
        "plan, the kernels' configs and the tables (compare.txt, .csv, .json). It can be read like "
        "the results themselves:"
    )
    yield "  python3 -m analysis.compare bug-report.tar.gz"
    yield "  python3 -m graphs bug-report.tar.gz -o report"
    yield "  python3 -m graphs --check bug-report.tar.gz  (or sha256sum -c MANIFEST)"
    if contents.no_mail:
        yield from paragraph(
            f"There is no {MAIL}, a mail on a regression: {safe_line(contents.no_mail, 300)}. This "
            "text can be sent instead."
        )
    else:
        yield from paragraph(
            f"{MAIL} is a mail of it for linux-mm: put the addresses of the suite and of this "
            f"bundle where it has {SUITE_URL} and {BUNDLE_URL}."
        )
    if contents.pictures:
        yield from paragraph(f"Pictures: {safe_line(', '.join(contents.pictures), 1500)}.", "  ")
    for remark in contents.remarks:
        yield from wrap(f"- {remark}", WIDTH, subsequent_indent="  ", break_on_hyphens=False)
    yield from paragraph(
        "Names, addresses, serial numbers and UUIDs were replaced by tokens such as <host-N>; "
        "REDACTIONS.txt lists each."
    )
