# SPDX-License-Identifier: GPL-2.0-or-later
"""The verdicts as CSV and as JSON, and why each run stalled as JSON.

Figures of a verdict are not rounded; values, mean, sd and median have the metric's unit. NaN and
infinity do not occur.

A run that failed has no figure: it is null (CSV: `failed`) among the values, and counted in
`failed`; sd and median are of the runs that ended by themselves; `missing` of the `runs` have no
value. A value whose `at_least` is True is a lower bound, since that run was not done, and so is the
mean; `at_least` is empty if all runs were done. `limit_s`: seconds up to which two variants are
compared, if no run of either was done by then.
"""

import csv
import io
import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from analysis.figures.metrics import Metric
from analysis.figures.vmstat import is_level
from analysis.stall_causes.run_causes import as_json
from analysis.verdicts import stored_causes
from analysis.verdicts.cause_table import METRICS as CAUSES
from analysis.verdicts.choice import LISTED_RUNS
from analysis.verdicts.compared import Compared
from analysis.verdicts.verdict import Comparison, Sample
from analysis.verdicts.vmstat import FLOOR

EXPORT_VERSION = 1  # of compare.json and of causes.json
CAUSES_JSON = stored_causes.NAME
CARDS = 10  # a run's longest stalls; FEWER_CARDS with more than LISTED_RUNS runs
FEWER_CARDS = 1
SAMPLE = ("runs", "failed", "unfinished", "missing", "mean", "sd", "median")
FIGURES = (
    *("ratio", "bound", "low", "high", "tested", "p", "p_adjusted", "delta", "p_equivalent"),
    *("smallest", "needed", "verdict", "more_runs", "least_runs", "limit_s"),
)
VMSTAT = ("ratio", "p", "p_adjusted", "delta")
ENDS = ("p", "p_adjusted", "verdict")  # of the runs that failed
HEADER = (
    *("variant", "label", "family", "metric", "unit", *SAMPLE, *FIGURES),
    *("values", "numbers", "orders"),
)


def json_text(compared: Compared) -> str:
    """One object: for each variant its verdict and all figures; `sure` for --stop-when-sure.

    With several workloads it has `format`, `sure`, and in `workloads` an object for each of them.
    """
    content = _whole(compared)
    if compared.others:
        workloads = [{"workload": part.workload.name, **_whole(part)} for part in compared.each]
        content = {"format": EXPORT_VERSION, "sure": compared.sure, "workloads": workloads}
    return json.dumps(content, indent=1, allow_nan=False) + "\n"


def _whole(compared: Compared) -> dict[str, Any]:
    content = {
        "format": EXPORT_VERSION,
        "baseline": compared.baseline,
        "sure": compared.sure,
        "level": compared.level,
        "alpha": compared.campaign.plan.alpha,
        "margin": compared.campaign.plan.margin,
        "looks": list(compared.campaign.plan.looks),
        "metrics": [
            {"key": m.key, "title": m.title, "unit": m.unit, "better": m.better}
            for m in compared.metrics
        ],
        "variants": [_variant(compared, variant) for variant in compared.variants],
        "forced": compared.forced,
        "notes": compared.notes,
    }
    if compared.causes.samples:
        content["causes"] = [
            {"key": key, "title": m.title, "unit": m.unit} for key, m in CAUSES.items()
        ]
    if compared.counters.figures:
        content["vmstat"] = {
            "floor": FLOOR,
            "levels": list(filter(is_level, compared.counters.samples)),
            "alike": compared.counters.alike,
        }
    return content


def _variant(compared: Compared, variant: str) -> dict[str, Any]:
    content: dict[str, Any] = {
        "variant": variant,
        "label": compared.labels[variant],
        "sentence": compared.sentences[variant],
        "verdict": compared.primary[variant].verdict if variant in compared.primary else None,
        "samples": {key: _sample(samples[variant]) for key, samples in compared.samples.items()},
    }
    if compared.causes.samples:
        content["causes"] = {
            key: _sample(of[variant]) for key, of in compared.causes.samples.items()
        }
    if compared.counters.figures:
        content["vmstat"] = _vmstat(compared, variant)
    if variant in compared.blame:
        blamed = compared.blame[variant]
        content["blame"] = {
            "sentence": blamed.sentence,
            "causes": blamed.causes,
            "change": blamed.change,
            "tests": {key: _comparison(comparison) for key, comparison in blamed.tests.items()},
        }
    if variant in compared.primary:
        ends = compared.failures[variant]
        content["primary"] = _comparison(compared.primary[variant])
        comparison = compared.primary[variant]
        if comparison.lost or comparison.base_lost:
            content["programs_lost"] = {"mean": comparison.lost, "base_mean": comparison.base_lost}
        content["spread"] = _comparison(compared.spread[variant])
        content["failures"] = fields(ends, ("failed", "runs", "base_failed", "base_runs", *ENDS))
        content["exploratory"] = {
            key: _comparison(of_variants[variant])
            for key, of_variants in compared.secondary.items()
        }
    return content


def _sample(sample: Sample) -> dict[str, Any]:
    return {
        **fields(sample, SAMPLE),
        "values": [value if math.isfinite(value) else None for value in sample.values],
        "numbers": list(sample.numbers),
        "at_least": list(sample.cut),
        "orders": list(sample.orders),
    }


def _vmstat(compared: Compared, variant: str) -> dict[str, Any]:
    """The counters that are not alike in all runs, those that differ most first.

    The baseline has only their figures.
    """
    samples = {
        counter: {
            "missing": of[variant].missing,
            "mean": of[variant].mean,
            "values": list(of[variant].values),
            "numbers": list(of[variant].numbers),
        }
        for counter, of in compared.counters.samples.items()
        if counter not in compared.counters.alike
    }
    differences = compared.counters.differences.get(variant)
    if differences is None:
        return {"counters": samples}
    tests = {
        difference.counter: fields(difference, ("ratio", "effect", "separate", *VMSTAT[1:]))
        for difference in differences.tested
    }
    return {
        "tested": len(differences.tested),
        "separate": len(differences.separate),
        "by_chance": differences.by_chance,
        "only_baseline": differences.only_base,
        "only_here": differences.only_here,
        "went_back": differences.went_back,
        "counters": {name: samples[name] | tests.get(name, {}) for name in {**tests, **samples}},
    }


def _comparison(one: Comparison) -> dict[str, Any]:
    return fields(one, (*FIGURES, "why"))


def fields(of: object, names: Sequence[str]) -> dict[str, Any]:
    """The values of these fields of an object, by name."""
    return {name: getattr(of, name) for name in names}


def csv_text(compared: Compared) -> str:
    """A row for each metric, cause and counter of a variant, for its spread and its failures.

    With several workloads the last column names the workload.
    """
    text = io.StringIO()
    more = ("workload",) if compared.others else ()
    rows = csv.DictWriter(text, (*HEADER, *more), lineterminator="\n")
    rows.writeheader()
    for part in compared.each:
        which = dict.fromkeys(more, _no_formula(part.workload.name))
        for variant in part.variants:
            for row in _rows(part, variant):
                row["label"] = _no_formula(part.labels[variant])
                rows.writerow({"variant": _no_formula(variant), **row, **which})
    return text.getvalue()


def _rows(compared: Compared, variant: str) -> Iterator[dict[str, Any]]:
    for metric in compared.metrics:
        family = "primary" if metric.primary else "exploratory"
        row = _sample_row(family, metric, compared.samples[metric.key][variant])
        by_variant = compared.of(metric)
        if variant in by_variant:
            row |= fields(by_variant[variant], FIGURES)
        yield row
    yield from _cause_rows(compared, variant)
    yield from _vmstat_rows(compared, variant)
    if variant in compared.spread:
        test, ends = compared.spread[variant], compared.failures[variant]
        unit = _no_formula(test.metric.unit)
        yield {"family": "spread", "metric": test.metric.key, "unit": unit} | fields(test, FIGURES)
        yield {"family": "failures", "metric": "failed"} | fields(ends, ("runs", "failed", *ENDS))


def _cause_rows(compared: Compared, variant: str) -> Iterator[dict[str, Any]]:
    tests = compared.blame[variant].tests if variant in compared.blame else {}
    for key, of_variants in compared.causes.samples.items():
        row = _sample_row("cause", CAUSES[key], of_variants[variant])
        if key in tests:
            row |= fields(tests[key], FIGURES)
        yield row


def _vmstat_rows(compared: Compared, variant: str) -> Iterator[dict[str, Any]]:
    differences = compared.counters.differences.get(variant)
    tests = (
        {difference.counter: difference for difference in differences.tested} if differences else {}
    )
    for counter in {**tests, **compared.counters.samples}:
        if counter in compared.counters.alike:
            continue
        metric = Metric(counter, counter, "level" if is_level(counter) else "growth", 0)
        row = _sample_row("vmstat", metric, compared.counters.samples[counter][variant])
        if counter in tests:
            row |= fields(tests[counter], VMSTAT)
        yield row


def _sample_row(family: str, metric: Metric, of: Sample) -> dict[str, Any]:
    sample = _sample(of)
    return {key: sample[key] for key in SAMPLE} | {
        "family": family,
        "metric": metric.key,
        "unit": _no_formula(metric.unit),
        "values": " ".join(_value(of, i) for i in range(len(of.values))),
        "numbers": " ".join(map(str, sample["numbers"])),
        "orders": " ".join("-" if o is None else str(o) for o in sample["orders"]),
    }


def _value(sample: Sample, place: int) -> str:
    value = sample.values[place]
    if not math.isfinite(value):
        return "failed"
    return f"{'>=' if any(sample.cut[place : place + 1]) else ''}{value!r}"


def _no_formula(word: str) -> str:
    """The word, quoted if a spreadsheet would take it for a formula."""
    return f"'{word}" if word.startswith(tuple("=+-@")) else word


def causes_json(compared: Compared) -> str:
    """causes.json, with `runs` as in `analysis.causes --json`; empty if no run has evidence."""
    runs = [run for part in compared.each for run in part.campaign.runs]
    most = CARDS if len(runs) <= LISTED_RUNS else FEWER_CARDS
    entries = [
        as_json(run, replace(why, cards=why.cards[:most], others=why.others[:most]))
        | {"stalls": len(why.cards) + why.without_card}
        for run in runs
        if (why := compared.causes.of(run)) is not None
    ]
    if not entries:
        return ""
    return json.dumps({"format": EXPORT_VERSION, "runs": entries}, indent=1, allow_nan=False) + "\n"
