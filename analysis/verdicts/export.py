# SPDX-License-Identifier: GPL-2.0-or-later
"""The verdicts as CSV and as JSON, and why each run stalled as JSON.

Every figure of a verdict is unrounded; NaN and infinity do not occur.

A run that failed has no figure: it is null (CSV: `failed`) among the values, and counted in
`failed`; sd and median are of the runs that ended by themselves; `missing` of the `runs` have no
value. A value that `at_least` says True of is at least so much, since that run was not done, and so
is the mean; `at_least` is empty if all were.
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
CARDS = 10  # of a run's longest stalls; FEWER_CARDS, if there are more than LISTED_RUNS runs
FEWER_CARDS = 1
SAMPLE = ("runs", "failed", "unfinished", "missing", "mean", "sd", "median")
FIGURES = (
    *("ratio", "bound", "low", "high", "tested", "p", "p_adjusted", "delta", "p_equivalent"),
    *("smallest", "needed", "verdict", "more_runs", "least_runs"),
)
VMSTAT = ("ratio", "p", "p_adjusted", "delta")
ENDS = ("p", "p_adjusted", "verdict")  # of the runs that failed
HEADER = (
    *("variant", "label", "family", "metric", "unit", *SAMPLE, *FIGURES),
    *("values", "numbers", "orders"),
)


def json_text(compared: Compared) -> str:
    """One object: for each variant its verdict and all figures; `sure` for --stop-when-sure.

    Of several workloads it has such an object for each in `workloads`, and the format and `sure`.
    """
    found = _whole(compared)
    if compared.others:
        each = [{"workload": one.workload.name, **_whole(one)} for one in compared.each]
        found = {"format": EXPORT_VERSION, "sure": compared.sure, "workloads": each}
    return json.dumps(found, indent=1, allow_nan=False) + "\n"


def _whole(compared: Compared) -> dict[str, Any]:
    found = {
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
        found["causes"] = [
            {"key": key, "title": m.title, "unit": m.unit} for key, m in CAUSES.items()
        ]
    if compared.counters.figures:
        found["vmstat"] = {
            "floor": FLOOR,
            "levels": list(filter(is_level, compared.counters.samples)),
            "alike": compared.counters.alike,
        }
    return found


def _variant(compared: Compared, variant: str) -> dict[str, Any]:
    found: dict[str, Any] = {
        "variant": variant,
        "label": compared.labels[variant],
        "sentence": compared.sentences[variant],
        "verdict": compared.primary[variant].verdict if variant in compared.primary else None,
        "samples": {key: _sample(samples[variant]) for key, samples in compared.samples.items()},
    }
    if compared.causes.samples:
        found["causes"] = {key: _sample(of[variant]) for key, of in compared.causes.samples.items()}
    if compared.counters.figures:
        found["vmstat"] = _vmstat(compared, variant)
    if variant in compared.blame:
        blamed = compared.blame[variant]
        found["blame"] = {
            "sentence": blamed.sentence,
            "causes": blamed.causes,
            "change": blamed.change,
            "tests": {key: _comparison(one) for key, one in blamed.tests.items()},
        }
    if variant in compared.primary:
        ends = compared.failures[variant]
        found["primary"] = _comparison(compared.primary[variant])
        one = compared.primary[variant]
        if one.lost or one.base_lost:
            found["programs_lost"] = {"mean": one.lost, "base_mean": one.base_lost}
        found["spread"] = _comparison(compared.spread[variant])
        found["failures"] = fields(ends, ("failed", "runs", "base_failed", "base_runs", *ENDS))
        found["exploratory"] = {
            key: _comparison(of_variants[variant])
            for key, of_variants in compared.secondary.items()
        }
    return found


def _sample(sample: Sample) -> dict[str, Any]:
    return {
        **fields(sample, SAMPLE),
        "values": [value if math.isfinite(value) else None for value in sample.values],
        "numbers": list(sample.numbers),
        "at_least": list(sample.cut),
        "orders": list(sample.orders),
    }


def _vmstat(compared: Compared, variant: str) -> dict[str, Any]:
    """The counters that are not alike in all runs, those first that differ most.

    Of the baseline their figures only.
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
    one = compared.counters.differences.get(variant)
    if one is None:
        return {"counters": samples}
    tests = {
        each.counter: fields(each, ("ratio", "effect", "separate", *VMSTAT[1:]))
        for each in one.tested
    }
    return {
        "tested": len(one.tested),
        "separate": len(one.separate),
        "by_chance": one.by_chance,
        "only_baseline": one.only_base,
        "only_here": one.only_here,
        "went_back": one.went_back,
        "counters": {name: samples[name] | tests.get(name, {}) for name in {**tests, **samples}},
    }


def _comparison(one: Comparison) -> dict[str, Any]:
    return fields(one, (*FIGURES, "why"))


def fields(of: object, names: Sequence[str]) -> dict[str, Any]:
    """These fields of an object by their names."""
    return {name: getattr(of, name) for name in names}


def csv_text(compared: Compared) -> str:
    """A row for each variant and metric, its causes, its counters, its spread and its failures.

    Of several workloads a last column says which.
    """
    text = io.StringIO()
    more = ("workload",) if compared.others else ()
    rows = csv.DictWriter(text, (*HEADER, *more), lineterminator="\n")
    rows.writeheader()
    for one in compared.each:
        which = dict.fromkeys(more, _no_formula(one.workload.name))
        for variant in one.variants:
            for row in _rows(one, variant):
                row["label"] = _no_formula(one.labels[variant])
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
        one, ends = compared.spread[variant], compared.failures[variant]
        unit = _no_formula(one.metric.unit)
        yield {"family": "spread", "metric": one.metric.key, "unit": unit} | fields(one, FIGURES)
        yield {"family": "failures", "metric": "failed"} | fields(ends, ("runs", "failed", *ENDS))


def _cause_rows(compared: Compared, variant: str) -> Iterator[dict[str, Any]]:
    tests = compared.blame[variant].tests if variant in compared.blame else {}
    for key, of_variants in compared.causes.samples.items():
        row = _sample_row("cause", CAUSES[key], of_variants[variant])
        if key in tests:
            row |= fields(tests[key], FIGURES)
        yield row


def _vmstat_rows(compared: Compared, variant: str) -> Iterator[dict[str, Any]]:
    one = compared.counters.differences.get(variant)
    tests = {each.counter: each for each in one.tested} if one else {}
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
    """The word as a text even to a spreadsheet, which would compute what begins like this."""
    return f"'{word}" if word.startswith(tuple("=+-@")) else word


def causes_json(compared: Compared) -> str:
    """causes.json: `runs` as `analysis.causes --json` has them; empty without evidence."""
    runs = [run for one in compared.each for run in one.campaign.runs]
    most = CARDS if len(runs) <= LISTED_RUNS else FEWER_CARDS
    found = [
        as_json(run, replace(why, cards=why.cards[:most], others=why.others[:most]))
        | {"stalls": len(why.cards) + why.without_card}
        for run in runs
        if (why := compared.causes.of(run)) is not None
    ]
    if not found:
        return ""
    return json.dumps({"format": EXPORT_VERSION, "runs": found}, indent=1, allow_nan=False) + "\n"
