# SPDX-License-Identifier: GPL-2.0-or-later
"""Which cause a regression or an improvement comes from, where there is one.

docs/explain/verdicts.md
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from analysis.figures.metrics import Metric
from analysis.stall_causes.causes import UNEXPLAINED
from analysis.verdicts.cause_table import METRICS, SHORT, CauseTable
from analysis.verdicts.judge import Pair, judge
from analysis.verdicts.sentences import p_equals, runs_word
from analysis.verdicts.verdict import Comparison, Sample

TESTED = 0.05  # of all stalled seconds of both variants: a smaller cause is not tested
PART = 0.1  # of the change of the stalled seconds: a cause with less of it explains nothing
# The waits that dm-crypt's share is taken from: one, where only some of the runs can tell it apart.
DISK = "disk"
DISK_WAITS = ("swap_in", "file_read", "file_write", "dm_crypt")
DISK_METRIC = Metric(f"cause-{DISK}", "stalled seconds: waits for the disk or dm-crypt", "s", 1)
NOUNS = {"regressed": "regression", "improved": "improvement"}


@dataclass(frozen=True)
class Blame:
    """What was tested for one variant, by cause, and the answer; `causes` of it, largest first."""

    sentence: str
    change: float | None = None  # of the mean stalled seconds a run, of the runs that tell
    tests: dict[str, Comparison] = field(default_factory=dict)
    causes: list[str] = field(default_factory=list)


def blame(
    table: CauseTable, base: str, primary: Mapping[str, Comparison], *, level: float, margin: float
) -> dict[str, Blame]:
    """Of each variant that differs from the baseline; none if no run has evidence."""
    if not table.samples:
        return {}
    return {
        variant: _blame(table, base, variant, NOUNS[one.verdict], level, margin)
        for variant, one in primary.items()
        if one.verdict in NOUNS
    }


def _blame(
    table: CauseTable, base: str, variant: str, noun: str, level: float, margin: float
) -> Blame:
    before, after = table.total[base], table.total[variant]
    if before is None or after is None:
        return Blame(f"Where the {noun} comes from is not known: there is no evidence of it.")
    change = after - before
    samples = _samples(table, base, variant)
    found = judge(_pairs(samples, variant), level=level, margin=margin)
    tests = {one.metric.key.removeprefix("cause-"): one for one in found}
    sign = 1 if noun == "regression" else -1
    explain = [
        key
        for key, one in tests.items()
        if one.differs
        and one.delta
        and one.delta * sign > 0
        and _change(one) * sign >= PART * abs(change)
        and change * sign > 0
    ]
    explain.sort(key=lambda key: -abs(_change(tests[key])))
    sentence = _sentence(noun, tests, explain)
    if DISK in samples:
        named = [SHORT[key] for key in DISK_WAITS]
        sentence += f" {', '.join(named[:-1])} and {named[-1]} are tested as one cause: not all of "
        sentence += "these runs tell dm-crypt apart from the disk."
    return Blame(sentence, change, tests, explain)


def _samples(table: CauseTable, base: str, variant: str) -> dict[str, tuple[Sample, Sample]]:
    """Baseline's and variant's seconds by cause, as far as both tell the causes apart."""
    found = {key: (of[base], of[variant]) for key, of in table.samples.items()}
    if len(table.apart[base] | table.apart[variant]) < 2:
        return found
    waits = [found.pop(key) for key in DISK_WAITS]
    before, after = (_together(each) for each in zip(*waits, strict=True))
    return {DISK: (before, after), **found}


def _together(samples: Sequence[Sample]) -> Sample:
    """The sum in each run; all are of the same runs."""
    values = zip(*(one.values for one in samples), strict=True)
    return replace(samples[0], values=tuple(map(math.fsum, values)))


def _pairs(samples: Mapping[str, tuple[Sample, Sample]], variant: str) -> list[Pair]:
    """The causes that can matter: how large one is in both together tells nothing of who has it."""
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
    words = {UNEXPLAINED: "time that no evidence explains", DISK: "waits for the disk or dm-crypt"}
    return words.get(key) or SHORT[key]


def _figures(one: Comparison) -> str:
    p = "" if one.p_adjusted is None else f", {p_equals(one.p_adjusted)} after Holm"
    change = _change(one)
    return f"({abs(change):,.1f} s a run {'less' if change < 0 else 'more'}{p})"


def _sentence(noun: str, tests: dict[str, Comparison], explain: list[str]) -> str:
    if explain:
        named = [f"{_words(key)} {_figures(tests[key])}" for key in explain]
        listed = " and ".join([", ".join(named[:-1])] * (len(named) > 1) + named[-1:])
        return f"The {noun} comes from {listed}{_missing(tests)}."
    if tests and all(one.too_few for one in tests.values()):
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
    one = next(iter(tests.values()), None)
    if one is None:
        return ""
    told = len(one.sample.values) + len(one.base.values)
    every = one.sample.runs + one.base.runs
    return f", told by {told} of {every} runs" if told < every else ""
