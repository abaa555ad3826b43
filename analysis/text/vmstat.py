# SPDX-License-Identifier: GPL-2.0-or-later
"""What the kernel did differently, as text: the counters that differ most, and how surely."""

from collections.abc import Iterator
from textwrap import wrap

from analysis.figures.metrics import BY_KEY
from analysis.figures.vmstat import is_level
from analysis.reading.words import first_names, plural, safe_line, short_label
from analysis.text.layout import grid
from analysis.text.verdict_table import p_cell
from analysis.verdicts import choice
from analysis.verdicts.choice import SHOWN, shown_words
from analysis.verdicts.compared import Compared
from analysis.verdicts.sentences import amount, runs_word, times
from analysis.verdicts.statistics import least_more_runs
from analysis.verdicts.verdict import Sample
from analysis.verdicts.vmstat import LEAST, Difference, Differences

TITLE = "What the kernel did differently"
ROWS = 12  # of a variant's table at most
ALL_ROWS = 36  # of the tables of all variants together, unless FEWEST makes them more
FEWEST = 3  # rows of a variant's table at least
NAMED = 5  # counters in a sentence
LABEL = 20  # columns of a variant's name in a heading
MEANING = (
    "One figure a run of each counter of /proc/vmstat: how much it grew from the first sample to "
    "the last, of a level the mean over that time. Separate: no run of one lies within the range "
    "of the other's runs. Counters move together: where chance separates one, it may separate many "
    "at once. A ratio is the variant's mean to the baseline's; more of a counter is neither better "
    "nor worse. Exploratory: none of this is a verdict."
)


def section(compared: Compared, width: int) -> Iterator[str]:
    """The tables of compare.txt, after an empty line; nothing if no run has counters."""
    variants = shown(compared)
    if not variants:
        return
    yield from ["", f"{TITLE}:", "", *wrap(MEANING, width)]
    rows = rows_each(len(variants))
    for variant in variants:
        yield ""
        for sentence in sentences(compared, variant, rows):
            yield from wrap(sentence, width, subsequent_indent="  ", break_on_hyphens=False)
        if compared.counters.differences[variant].notable:
            table = table_rows(compared, variant)[: 1 + rows]
            yield from ["", *grid(table, width, whole_names=True)]
    if words := shown_words(SHOWN, len(compared.variants), compared.metric):
        yield from ["", *wrap(f"{words}; compare.csv and compare.json have all.", width)]


def rows_each(variants: int, whole: int = ALL_ROWS, most: int = ROWS) -> int:
    """Rows of a variant's table, FEWEST to `most`; the tables of all variants share `whole`."""
    return max(FEWEST, min(most, whole // max(1, variants)))


def shown(compared: Compared) -> list[str]:
    """The variants that have a table: all but the baseline; of many, the best and the worst."""
    if not compared.counters.figures:
        return []
    chosen = choice.shown(compared.campaign, compared.variants)
    return [variant for variant in chosen if variant != compared.baseline]


def sentences(compared: Compared, variant: str, rows: int = ROWS) -> Iterator[str]:
    """What differs, what can be concluded from it, and what was not compared."""
    differences = compared.counters.differences[variant]
    label, base = (safe_line(compared.labels[of], 40) for of in (variant, compared.baseline))
    if not all(differences.runs):
        yield f"{label}: no counters to compare, for want of runs that ended with some."
        return
    yield f"{label} against {base}: {_found(differences)}{_lengths(compared, variant)}"
    if lacking := [
        f"only {who} has {first_names(names, NAMED)}"
        for who, names in ((base, differences.only_base), (label, differences.only_here))
        if names
    ]:
        yield f"Not compared: {'; '.join(lacking)}."
    if differences.went_back:
        yield (
            "A counter that only grows went back (it wrapped, or was reset): that run has no "
            f"figure of {first_names(differences.went_back, NAMED)}."
        )
    if differences.tested:
        yield _listed(differences, rows)


def _listed(differences: Differences, rows: int) -> str:
    """Which counters the table has; it begins with the separate ones."""
    least = f"{100 * (LEAST - 1):.0f} %"
    if not differences.notable:
        return f"None differs by {least} or more."
    apart = sum(difference.separate for difference in differences.notable)
    which = "separate ones" if max(differences.runs) > 1 else "ones"
    if apart > rows:
        return f"The {rows} {which} that differ most:"
    first = f"All {which} that differ by {least} or more" if apart else ""
    if len(differences.notable) == apart:
        return f"{first}:"
    overlap = f"that overlap, with p <= {differences.level:.2g} before Holm"
    if len(differences.notable) > rows:
        return (
            f"{first}, then those {overlap}, that differ most:"
            if first
            else (f"The {rows} that differ most, of those {overlap}:")
        )
    return f"{first}, then those {overlap}:" if first else f"Those {overlap}:"


def _lengths(compared: Compared, variant: str) -> str:
    """A sentence if the runs took longer or less long, since that changes the counters too."""
    metric = BY_KEY["elapsed"]
    base, mean = (compared.samples[metric.key][of].mean for of in (compared.baseline, variant))
    if not base or not mean or 1 / LEAST < mean / base < LEAST:
        return ""
    took = f"{amount(metric, mean)} against {amount(metric, base)} ({times(mean / base)} times)"
    return f" Its runs took {took}: what happens at a steady pace differs by as much."


def _found(differences: Differences) -> str:
    """How many counters are separate, how many chance would separate, and what is established."""
    tested = plural(len(differences.tested), "counter")
    runs = runs_word(*differences.runs)
    if not differences.tested:
        return f"no counter differs between any two runs ({runs})."
    if max(differences.runs) == 1:
        verb = "differs" if len(differences.tested) == 1 else "differ"
        return f"{tested} {verb}, by 1 run each: a sign, not a finding."
    apart = len(differences.separate)
    digits = (
        ".2g" if differences.by_chance < 0.95 else ".1f" if differences.by_chance < 9.95 else ",.0f"
    )
    chance = f"{differences.by_chance:{digits}}"
    text = (
        f"{apart:,} of {tested} {'is' if apart == 1 else 'are'} separate ({runs}; chance alone "
        f"would separate {chance} on the average). "
    )
    after = f"p {differences.level:.2g} after Holm over {tested}"
    if not differences.too_few:
        return text + f"{differences.established or 'None'} reached {after}."
    more = least_more_runs(1, 1, differences.level / len(differences.tested))
    enough = "" if more is None else f"; {1 + more} runs of each could"
    return text + f"None can reach {after}, whatever was counted{enough}."


def table_rows(compared: Compared, variant: str) -> list[list[str]]:
    """The heads, then a row for each counter shown, those that differ most first."""
    differences = compared.counters.differences[variant]
    labels = [short_label(compared.labels[of], LABEL) for of in (compared.baseline, variant)]
    size, others = differences.runs
    return [
        ["counter", *labels, "ratio", "runs", "p", "p (Holm)"],
        *(
            [
                name(difference.counter),
                _range(difference.base, others),
                _range(difference.sample, size),
                ratio_cell(difference),
                "separate" if difference.separate else "overlap",
                p_cell(difference.p),
                p_cell(difference.p_adjusted),
            ]
            for difference in differences.notable
        ),
    ]


def name(counter: str) -> str:
    """'pswpin', 'nr_free_pages (level)'."""
    return f"{counter} (level)" if is_level(counter) else counter


def ratio_cell(difference: Difference) -> str:
    """'10.4', '0.0031', 'from 0', 'to 0': the ratio of the means."""
    ratio = difference.ratio
    if ratio is None:
        return "from 0"
    if not ratio:
        return "to 0"
    return times(ratio) if ratio >= 0.0995 else f"{ratio:.2g}"


def _range(sample: Sample, runs: int) -> str:
    """'5,100-7,001', a single value if all are alike; with their number if not all runs have it."""
    least, most = min(sample.values), max(sample.values)
    ends = dict.fromkeys(_figure(value, most) for value in (least, most))
    fewer = f" ({len(sample.values)} of {runs})" if len(sample.values) < runs else ""
    return "-".join(ends) + fewer


def _figure(value: float, most: float) -> str:
    """The exact value, or millions if the larger end of the range is a million or more."""
    if most >= 999_999.5:
        return f"{value / 1e6:,.2f}M"
    return f"{value:,.0f}" if value == int(value) or value >= 99.5 else f"{value:.1f}"
