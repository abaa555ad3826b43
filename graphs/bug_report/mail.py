# SPDX-License-Identifier: GPL-2.0-or-later
"""mail.txt: a regression report for linux-mm, at most LINES lines of 75 columns.

It has what a kernel developer asks for first; report.txt has everything. It uses only files that a
bundle always contains, so that anyone can make the same mail from the bundle.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from analysis.figures import observer_faults
from analysis.figures.metrics import BY_KEY, Metric, added_up, counted
from analysis.figures.stalls import worst
from analysis.reading.facts import busy_host
from analysis.reading.kernel_configs import differences
from analysis.reading.kernel_version import introduced_in, kernel_version
from analysis.reading.latency_log import number
from analysis.reading.load import Run
from analysis.reading.words import (
    number_word,
    plural,
    plural_subject,
    safe_line,
    seconds,
    with_article,
)
from analysis.stall_causes.causes import words
from analysis.text import vmstat
from analysis.text.layout import WIDTH, grid, indented, paragraph
from analysis.text.verdict_table import direction_word, metric_cell
from analysis.verdicts.notes import in_blocks
from analysis.verdicts.regression import Regression
from analysis.verdicts.sentences import limit_words, times
from analysis.verdicts.vmstat import kernel_counters
from contract.workload import DESKTOP, STALLED
from graphs.bug_report import reproduce
from graphs.bug_report.mail_scene import scene

NAME = "mail.txt"
LINES = 60
SUITE_URL, BUNDLE_URL = "SUITE-URL", "BUNDLE-URL"  # placeholders that the sender has to fill in
HEADER = ("To: linux-mm@kvack.org", "Cc: regressions@lists.linux.dev, linux-kernel@vger.kernel.org")
ROWS = 5
FIRST = ("share-1", "worst", STALLED, "skips", "elapsed", "wait", "beats", "page-in", "swap-in")
COUNTERS = 4
OTHERS = 5  # other kernels that are listed
FUNCTIONS = 10  # functions listed of a stack
LABEL = 24
# Options that decide over reclaim, swap and scheduling, the most important first.
TELLING = (
    *(r"LRU_GEN\w*", "ZSWAP", "SWAP", "ZRAM", r"PREEMPT\w*", r"HZ_?\d*", r"NO_HZ\w*", r"MEMCG\w*"),
    *("COMPACTION", r"TRANSPARENT_HUGEPAGE\w*", "PT_RECLAIM", r"NUMA\w*", "CMA", "PAGE_MAPCOUNT"),
    *(r"SLUB\w*", r"SCHED_\w+"),
)
OPTIONS = 6
COMMIT = re.compile(r"[0-9a-f]{7,40}")


@dataclass(frozen=True)
class Mail:
    """A mail about `variants`; `counters`: columns of vmstat.tsv that a bundle keeps for it."""

    text: str
    variants: tuple[str, ...] = ()
    counters: frozenset[str] = frozenset()


def mail(regression: Regression) -> Mail:
    """The mail; its input has to be redacted already."""
    pair = _pair(regression)
    counters, table = _counters(pair, regression)
    parts = [
        [*HEADER, _subject(regression)],
        [*_sentences(regression, pair)],
        [*_rows(regression), *_others(regression)],
        [*_stack(regression, pair)],
        table,
        [*_config(regression)],
        [*scene(*pair.values()), *_caveats(regression, pair)],
        [*_reproducer(regression, pair)],
        [*_end(regression, pair)],
    ]
    for dispensable in (5, 4, 3):  # a usual mail is shorter
        if sum(len(part) + 1 for part in parts if part) - 1 > LINES:
            parts[dispensable] = []
    lines = [line for part in parts if part for line in [*part, ""]][:-1]
    return Mail(
        "\n".join(line.rstrip() for line in lines) + "\n",
        (regression.old, regression.new),
        counters,
    )


def _pair(regression: Regression) -> dict[str, list[Run]]:
    """The runs of both kernels that the verdict uses, the older kernel's first."""
    trusted = observer_faults.trusted(regression.compared.campaign.variants())
    return {
        variant: [run for run in trusted[variant] if counted(run)]
        for variant in (regression.old, regression.new)
    }


def _label(regression: Regression, variant: str) -> str:
    return safe_line(regression.compared.labels[variant], LABEL)


def _subject(regression: Regression) -> str:
    old, new = _label(regression, regression.old), _label(regression, regression.new)
    metric, ratio = regression.compared.metric, regression.ratio
    if ratio is None:
        text = f"{new} fails where {old} does not"
    elif metric.key == STALLED:
        text = f"{new} stalls {regression.bound(metric)}{times(ratio)} times as long as {old}"
    else:
        text = f"{new}: {metric.title} {regression.bound(metric)}{times(ratio)} times that of {old}"
    text += limit_words(regression.comparison, brief=True)
    return safe_line(f"Subject: [REGRESSION] {text}", WIDTH)


def _sentences(regression: Regression, pair: dict[str, list[Run]]) -> Iterator[str]:
    """What a user would notice; what was tested."""
    silences = {
        variant: max((worst(s) for run in runs for s in run.subjects), default=None)
        for variant, runs in pair.items()
    }
    old, new = (silences[variant] for variant in (regression.old, regression.new))
    first, felt = "", regression.compared.felt
    if regression.old in felt and regression.new in felt:  # the sentence says for how long
        them = plural_subject(regression.compared.campaign.subject)
        first = f"{_while(pair[regression.new][0])}, the {them} freeze. "
    elif old is not None and new is not None:
        subject = with_article(regression.compared.campaign.subject)
        first = (
            f"{_while(pair[regression.new][0])}, {subject} stands still for up to {seconds(new)} "
            f"at a time with {_label(regression, regression.new)}, for up to {seconds(old)} with "
            f"{_label(regression, regression.old)}. "
        )
    verdict = regression.compared.sentences[regression.comparison.variant]
    yield from paragraph(first + safe_line(verdict, 900))


def _while(run: Run) -> str:
    """The workload, as the beginning of a sentence."""
    if run.workload.name != DESKTOP:
        return f"Under the load {safe_line(run.workload.name, 30)}"
    gitks = number(run.fact("parameters", "gitk"))
    many = f"{number_word(int(gitks))} gitk's" if gitks else "gitk's"
    return f"While music plays and {many} read a long history and swap"


def _rows(regression: Regression) -> Iterator[str]:
    """A table of the most important figures: old, new and change."""
    old, new = _label(regression, regression.old), _label(regression, regression.new)
    rows = [["mean of a run", old, new, "median change"]]
    own = [metric.key for metric in regression.compared.metrics if metric.key not in BY_KEY]
    by_key = {metric.key: metric for metric in regression.compared.metrics}
    for key in dict.fromkeys([*own, *FIRST]):
        if key in by_key and len(rows) <= ROWS and (row := _row(regression, by_key[key])):
            rows.append(row)
    yield from grid(rows, WIDTH)


def _row(regression: Regression, metric: Metric) -> list[str]:
    """A row of the table; empty if a kernel has no figure, or both are 0."""
    samples = regression.compared.samples[metric.key]
    variants = (regression.old, regression.new)
    before, after = (samples[variant].mean for variant in variants)
    if before is None or after is None or not (before or after):
        return []
    name = metric.title
    if metric.key == STALLED:
        words = added_up(regression.compared.workload)
        name = f"stalled{words and f', {words}'}"
    name += f" ({metric.unit})" if metric.unit else ""
    cells = [metric_cell(regression.compared, metric, variant)[0] for variant in variants]
    ratio = regression.of(metric)
    times_of = "-"
    if ratio is not None:
        times_of = f"{regression.bound(metric)}{times(ratio)}x{_word(regression, metric)}"
    return [safe_line(name, 40), *cells, times_of]


def _word(regression: Regression, metric: Metric) -> str:
    """' worse', ' better?': the direction of the newer kernel's change."""
    word = direction_word(regression.compared.of(metric)[regression.comparison.variant])
    if regression.comparison.variant == regression.old:  # the newer one is the baseline
        turned = {"worse": "better", "better": "worse"}
        word = turned.get(word.rstrip("?"), word) + "?" * word.endswith("?")
    return f" {word}" if word else ""


def _others(regression: Regression) -> Iterator[str]:
    """The campaign's other kernels, compared with its baseline."""
    compared = regression.compared
    changes = [
        f"{safe_line(compared.labels[variant], LABEL)} {other.bound}{times(other.ratio)}x "
        f"({other.verdict})"
        for variant, other in compared.primary.items()
        if variant not in (regression.old, regression.new) and other.ratio is not None
    ]
    if changes:
        base = safe_line(compared.labels[compared.baseline], LABEL)
        more = (
            f" and {plural(len(changes) - OTHERS, 'more kernel')}" if len(changes) > OTHERS else ""
        )
        yield from paragraph(
            f"The others against {base}: {', '.join(changes[:OTHERS])}{more}.", "  "
        )


def _stack(regression: Regression, pair: dict[str, list[Run]]) -> Iterator[str]:
    """The cause and the stack of the newer kernel's longest stall."""
    cards = [
        (why.cards[0], run)
        for run in pair[regression.new]
        if (why := regression.compared.causes.of(run)) is not None and why.cards
    ]
    if not cards:
        return
    card, run = max(cards, key=lambda entry: (round(entry[0].stall.length, 3), -entry[1].number))
    length, inside = card.stall.length, card.seconds[card.main]
    text = (
        f"Longest stall of {_label(regression, regression.new)} (run {run.number}, "
        f"{safe_line(card.stall.stream, 24)}, {seconds(length)}): {words(card.main, card.swap)} "
        f"{100 * inside / length:.0f} % of it"
    )
    if not card.stacks:
        yield from paragraph(text + ".")
        return
    stack, count = card.stacks[0]
    names = stack.split(" <- ")
    yield from paragraph(f"{text}. In {count} of {plural(card.samples, 'sample')} its stack was")
    yield from indented(
        " <- ".join(names[:FUNCTIONS]) + (" <- ..." if len(names) > FUNCTIONS else ""), 2
    )


def _counters(
    pair: dict[str, list[Run]], regression: Regression
) -> tuple[frozenset[str], list[str]]:
    """The counters with separate values that differ most: their names, and their table."""
    compared = regression.compared
    both = kernel_counters(pair, list(pair), compared.counters.figures, compared.level)
    apart = [
        difference for difference in both.differences[regression.new].notable if difference.separate
    ][:COUNTERS]
    if not apart:
        return frozenset(), []
    turned = replace(compared, baseline=regression.old, counters=both)
    table = vmstat.table_rows(turned, regression.new)[: 1 + len(apart)]
    return frozenset(difference.counter for difference in apart), [
        "What the kernel did differently (/proc/vmstat; where to look, no verdict):",
        *grid(
            [[*row[:3], "change" if not at else _change(row[3])] for at, row in enumerate(table)],
            WIDTH,
            whole_names=True,
        ),
    ]


def _change(ratio: str) -> str:
    """The ratio as text: '12.3x', 'from 0'."""
    return ratio if ratio.endswith(" 0") else f"{ratio}x"


def _config(regression: Regression) -> Iterator[str]:
    """The number of options in which the configs differ, and the important ones."""
    configs = regression.compared.campaign.configs
    if regression.old not in configs or regression.new not in configs:
        return
    apart = differences(configs[regression.old], configs[regression.new])
    if not apart:
        yield from paragraph("Their configs are equal.")
        return
    telling = [
        f"{safe_line(option.removeprefix('CONFIG_'), 40)} "
        f"{safe_line(was, 12)} -> {safe_line(now, 12)}"
        for pattern in TELLING
        for option, was, now in apart
        if re.fullmatch(f"CONFIG_{pattern}", option)
    ]
    some = ""
    if telling:
        left = len(telling) - OPTIONS
        more = f" and {left} more such" if left > 0 else ""
        some = f", of reclaim, swap and scheduling: {', '.join(telling[:OPTIONS])}{more}"
    yield from paragraph(f"Config: {plural(len(apart), 'option')} differ{some}.", "  ")


def _caveats(regression: Regression, pair: dict[str, list[Run]]) -> Iterator[str]:
    """Reasons to doubt the numbers."""
    notes = in_blocks(pair, list(pair)) + busy_host([run for runs in pair.values() for run in runs])
    notes += [note for note in regression.compared.notes if note.startswith("Not finished")]
    for note in notes:
        yield from paragraph(f"Caveat: {safe_line(note, 300)}", "  ")


def _reproducer(regression: Regression, pair: dict[str, list[Run]]) -> Iterator[str]:
    """The commands that reproduce the result, three lines as a rule."""
    suites = {str(run.fact("suite")) for runs in pair.values() for run in runs}
    place = f"git clone {SUITE_URL} freeze && cd freeze"
    if len(suites) == 1 and COMMIT.fullmatch(commit := suites.pop()):
        place += f" && git checkout -q {commit}"
    yield "To reproduce it:"
    yield f"  {place}"
    yield from reproduce.of_two(regression.compared, list(pair))


def _end(regression: Regression, pair: dict[str, list[Run]]) -> Iterator[str]:
    old, new = (kernel_version(pair[variant][0]) for variant in (regression.old, regression.new))
    yield f"#regzbot introduced: {introduced_in(old, new)}"
    yield ""
    yield from paragraph(
        f"Logs, counters, configs, tables and pictures: {BUNDLE_URL} (bug-report.tar.gz; "
        "`python3 -m graphs bug-report.tar.gz` in the suite makes this mail of it)."
    )
