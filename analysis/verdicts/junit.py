# SPDX-License-Identifier: GPL-2.0-or-later
"""The verdicts as JUnit XML: a suite for each variant, a test for each metric.

docs/reference/compare-json.md describes the elements.

Uses only what the schemas of Ant and Jenkins both allow: tests have no properties and a single
result.
"""

import contextlib
from collections.abc import Sequence
from datetime import datetime
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

from analysis.figures import observer_faults
from analysis.figures.metrics import counted, whole
from analysis.reading.latency_log import number
from analysis.reading.load import Run
from analysis.reading.words import safe_line
from analysis.verdicts.compared import Compared
from analysis.verdicts.fail_on import without_runs
from analysis.verdicts.verdict import Comparison

FIGURES = ("verdict", "ratio", "low", "high", "p_adjusted")
NO_DATE = "1970-01-01T00:00:00"  # Ant's schema requires a date


def text(compared: Compared, fail_on: Sequence[str] = ()) -> str:
    """junit.xml: a failure is a primary metric whose verdict is in `fail_on`.

    An error is a run that failed, or was not done at its limit.
    """
    root = Element("testsuites")
    for part in compared.each:
        for variant in part.variants:
            root.append(_suite(part, variant, fail_on))
        for label in without_runs(part):
            root.append(_without_runs(part, label, fail_on))
    for place, suite in enumerate(root):
        suite.set("id", str(place))
        cases = suite.findall("testcase")
        suite.set("tests", str(len(cases)))
        for total, end in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
            suite.set(total, str(sum(case.find(end) is not None for case in cases)))
        SubElement(suite, "system-err")
    ElementTree.indent(root)
    head = '<?xml version="1.0" encoding="UTF-8"?>\n'
    return head + ElementTree.tostring(root, encoding="unicode") + "\n"


def _suite(compared: Compared, variant: str, fail_on: Sequence[str]) -> Element:
    runs = [run for run in compared.campaign.variants()[variant] if counted(run)]
    label = compared.labels[variant]
    suite = _begun(compared, label, runs)
    about = SubElement(suite, "properties")
    _property(about, "variant", safe_line(variant))
    _property(about, "baseline", safe_line(compared.baseline))
    _property(about, "forced", "; ".join(map(safe_line, compared.forced)))
    comparisons = [compared.primary[variant]] if variant in compared.primary else []
    comparisons += [of[variant] for of in compared.secondary.values() if variant in of]
    for metric in compared.metrics:
        _property(about, f"{metric.key}.mean", compared.samples[metric.key][variant].mean)
    for comparison in comparisons:
        for name in FIGURES:
            _property(about, f"{comparison.metric.key}.{name}", getattr(comparison, name))
    for run in runs:
        _run(_case(compared, suite, label, f"run {run.number}", _seconds(run)), run)
    for comparison in comparisons:
        title = f"{comparison.metric.key}: {safe_line(comparison.metric.title, 100)}"
        sentence = compared.sentences[variant] if comparison.metric.primary else comparison.why
        _judged(_case(compared, suite, label, title), comparison, sentence, fail_on)
    SubElement(suite, "system-out").text = compared.sentences[variant]
    return suite


def _without_runs(compared: Compared, label: str, fail_on: Sequence[str]) -> Element:
    """The suite of a planned variant without runs: undecided."""
    label = safe_line(label, 60)
    suite = _begun(compared, label, [])
    about = SubElement(suite, "properties")
    _property(about, "variant", label)
    _property(about, "baseline", safe_line(compared.baseline))
    metric = compared.metric
    case = _case(compared, suite, label, f"{metric.key}: {safe_line(metric.title, 100)}")
    end = "failure" if "undecided" in fail_on else "skipped"
    _end(case, end, "undecided", "no run of it counts")
    SubElement(suite, "system-out")
    return suite


def _begun(compared: Compared, label: str, runs: Sequence[Run]) -> Element:
    """A suite without its children and their counts."""
    return Element(
        "testsuite",
        name=label,
        package=safe_line(compared.workload.name, 60),
        timestamp=_date(compared, runs),
        hostname="localhost",
        time=f"{sum(map(_seconds, runs)):.3f}",
    )


def _case(
    compared: Compared, suite: Element, label: str, name: str, seconds: float = 0.0
) -> Element:
    # Jenkins takes the part before a dot for a package.
    classname = f"{safe_line(compared.workload.name, 60)}.{label.replace('.', '_')}"
    return SubElement(suite, "testcase", name=name, classname=classname, time=f"{seconds:.3f}")


def _run(case: Element, run: Run) -> None:
    if not whole(run):
        _end(case, "error", run.state, safe_line(run.status.get("why"), 500))
    elif disturbed := observer_faults.of_run(run):
        why = ", ".join(disturbed)
        _end(case, "skipped", "disturbed", f"in no verdict, observers were disturbed: {why}")


def _judged(case: Element, comparison: Comparison, sentence: str, fail_on: Sequence[str]) -> None:
    """Adds the result: undecided counts as skipped; exploratory metrics never fail."""
    why = sentence or comparison.verdict
    if comparison.metric.primary and comparison.verdict in fail_on:
        _end(case, "failure", comparison.verdict, why)
    elif comparison.verdict == "undecided":
        _end(case, "skipped", comparison.verdict, why)


def _end(case: Element, end: str, kind: str, message: str) -> None:
    SubElement(case, end, type=safe_line(kind, 60), message=message).text = message


def _property(about: Element, name: str, value: object) -> None:
    if value not in (None, ""):
        SubElement(about, "property", name=name, value=str(value))


def _seconds(run: Run) -> float:
    """Seconds that the workload took; 0 if unknown."""
    return max(0.0, number(run.status.get("elapsed_s")) or 0.0)


def _date(compared: Compared, runs: Sequence[Run]) -> str:
    """When the first of the runs began, from plan.toml; NO_DATE if unknown."""
    begun = compared.whole.plan.tables.get("run")
    known = [(run.variant, run.number) for run in runs]
    for entry in begun if isinstance(begun, list) else []:
        if isinstance(entry, dict) and (entry.get("variant"), entry.get("number")) in known:
            with contextlib.suppress(ValueError):
                begin = datetime.fromisoformat(str(entry.get("date")))
                return begin.replace(tzinfo=None).isoformat(timespec="seconds")
    return NO_DATE
