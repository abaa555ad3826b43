# SPDX-License-Identifier: GPL-2.0-or-later
"""Which causes a regression or an improvement comes from, if any (docs/explain/verdicts.md)."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from analysis.figures.metrics import Metric
from analysis.stall_causes.causes import UNEXPLAINED
from analysis.verdicts.cause_table import METRICS, SHORT, CauseTable
from analysis.verdicts.judge import Pair, judge
from analysis.verdicts.sentences import p_equals, runs_word
from analysis.verdicts.verdict import Comparison, Sample

TESTED = 0.05  # share of the stalled seconds of both variants: smaller causes are not tested
PART = 0.1  # share of the change of the stalled seconds: a smaller change explains nothing
# dm-crypt's share is part of these waits; they are one cause if only some runs can tell it apart.
DISK = "disk"
DISK_WAITS = ("swap_in", "file_read", "file_write", "dm_crypt")
DISK_METRIC = Metric(f"cause-{DISK}", "stalled seconds: waits for the disk or dm-crypt", "s", 1)
NOUNS = {"regressed": "regression", "improved": "improvement"}


@dataclass(frozen=True)
class Blame:
    """The tests of a variant by cause, and the answer; `causes`: those it names, largest first."""

    sentence: str
    change: float | None = None  # of the mean stalled seconds of a run with evidence
    tests: dict[str, Comparison] = field(default_factory=dict)
    causes: list[str] = field(default_factory=list)


def blame(
    table: CauseTable, base: str, primary: Mapping[str, Comparison], *, level: float, margin: float
) -> dict[str, Blame]:
    """The blame of each variant that regressed or improved; empty if no run has evidence."""
    if not table.samples:
        return {}
    return {
        variant: _blame(table, base, variant, NOUNS[comparison.verdict], level, margin)
        for variant, comparison in primary.items()
        if comparison.verdict in NOUNS
    }


def _blame(
    table: CauseTable, base: str, variant: str, noun: str, level: float, margin: float
) -> Blame:
    before, after = table.total[base], table.total[variant]
    if before is None or after is None:
        return Blame(f"Where the {noun} comes from is not known: there is no evidence of it.")
    change = after - before
    is_bound = (base in table.to_limit) != (variant in table.to_limit)
    samples = _samples(table, base, variant)
    comparisons = judge(_pairs(samples, variant), level=level, margin=margin)
    tests = {test.metric.key.removeprefix("cause-"): test for test in comparisons}
    sign = 1 if noun == "regression" else -1
    explain = [
        key
        for key, test in tests.items()
        if test.differs
        and test.delta
        and test.delta * sign > 0
        and (is_bound or (_change(test) * sign >= PART * abs(change) and change * sign > 0))
    ]
    explain.sort(key=lambda key: -abs(_change(tests[key])))
    sentence = _sentence(noun, tests, explain)
    if DISK in samples:
        named = [SHORT[key] for key in DISK_WAITS]
        sentence += f" {', '.join(named[:-1])} and {named[-1]} are tested as one cause: not all of "
        sentence += "these runs tell dm-crypt apart from the disk."
    return Blame(sentence, change, tests, explain)


def _samples(table: CauseTable, base: str, variant: str) -> dict[str, tuple[Sample, Sample]]:
    """Stalled seconds by cause, of the baseline and the variant.

    DISK replaces its causes if not all runs tell dm-crypt apart.
    """
    samples = {key: (of[base], of[variant]) for key, of in table.samples.items()}
    if len(table.apart[base] | table.apart[variant]) < 2:
        return samples
    waits = [samples.pop(key) for key in DISK_WAITS]
    before, after = (_together(side) for side in zip(*waits, strict=True))
    return {DISK: (before, after), **samples}


def _together(samples: Sequence[Sample]) -> Sample:
    """The sums of the samples in each run; all samples are of the same runs."""
    values = zip(*(sample.values for sample in samples), strict=True)
    return replace(samples[0], values=tuple(map(math.fsum, values)))


def _pairs(samples: Mapping[str, tuple[Sample, Sample]], variant: str) -> list[Pair]:
    """The causes to test: those large in both variants together, which favours neither of them."""
    sums = {key: math.fsum((*a.values, *b.values)) for key, (a, b) in samples.items()}
    least = TESTED * math.fsum(sums.values())
    metrics = {**METRICS, DISK: DISK_METRIC}
    return [
        Pair(metrics[key], variant, before, after)
        for key, (before, after) in samples.items()
        if sums[key] > 0 and sums[key] >= least
    ]


def _change(one: Comparison) -> float:
    return (one.sample.mean or 0.0) - (one.base.mean or 0.0)


def _words(key: str) -> str:
    words = {UNEXPLAINED: "unexplained time", DISK: "waits for the disk or dm-crypt"}
    return words.get(key) or SHORT[key]


def _figures(one: Comparison) -> str:
    p = "" if one.p_adjusted is None else f", {p_equals(one.p_adjusted)} after Holm"
    change = _change(one)
    bound = ""
    if any(one.base.cut) != any(one.sample.cut):  # the cut side has at least its seconds
        bound = "at least " if any(one.sample.cut) == (change > 0) else "at most "
    return f"({bound}{abs(change):,.1f} s a run {'less' if change < 0 else 'more'}{p})"


def _sentence(noun: str, tests: dict[str, Comparison], explain: list[str]) -> str:
    if explain:
        named = [f"{_words(key)} {_figures(tests[key])}" for key in explain]
        listed = " and ".join([", ".join(named[:-1])] * (len(named) > 1) + named[-1:])
        return f"The {noun} comes from {listed}{_missing(tests)}."
    if tests and all(test.too_few for test in tests.values()):
        first = next(iter(tests.values()))
        runs = runs_word(len(first.sample.values), len(first.base.values))
        causes = "its cause" if len(tests) == 1 else f"which of {len(tests)} causes it comes from"
        return f"{runs} are too few to tell {causes}{_missing(tests)}."
    text = f"No single cause explains the {noun}"
    largest = max(tests, key=lambda key: abs(_change(tests[key])), default=None)
    if largest is not None:
        text += f"; the largest change is of {_words(largest)} {_figures(tests[largest])}"
    return f"{text}{_missing(tests)}."


def _missing(tests: Mapping[str, Comparison]) -> str:
    test = next(iter(tests.values()), None)
    if test is None:
        return ""
    known = len(test.sample.values) + len(test.base.values)
    every = test.sample.runs + test.base.runs
    return f" (causes are known for {known} of {every} runs)" if known < every else ""
