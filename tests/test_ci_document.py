# SPDX-License-Identifier: GPL-2.0-or-later
"""The reference names each exit status, each word of --fail-on and each field of compare.json."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from analysis.reading.load import load_campaign
from analysis.verdicts import export
from analysis.verdicts.compare import compare
from benchmarks.synthetic_results.make import make_campaign
from contract.values import FAIL_ON
from errors import Exit

REFERENCE = Path(__file__).resolve().parents[1] / "docs" / "reference"
STATUSES = (REFERENCE / "exit-statuses.md").read_text()
GUIDE = (REFERENCE.parent / "guides" / "ci-nightly.md").read_text()
FIELDS = (REFERENCE / "compare-json.md").read_text()
# The keys of these objects are those of metrics, causes and counters.
BY_KEY = {"samples", "causes", "exploratory", "tests", "counters", "alike"}


def fields(value: Any, place: str = "") -> Iterator[str]:
    if isinstance(value, list):
        for item in value:
            yield from fields(item, place)
    elif isinstance(value, dict) and place != "vmstat":
        for key, item in value.items():
            if place not in BY_KEY:
                yield key
            yield from fields(item, "" if place in BY_KEY else key)


def test_each_status_is_in_the_table() -> None:
    for status in Exit:
        assert f"| {int(status)} | {status.name} |" in STATUSES


def test_each_word_of_fail_on_is_named() -> None:
    for word in FAIL_ON:
        assert f"`{word}`" in STATUSES
        assert f"`{word}`" in GUIDE


def test_each_field_of_compare_json_is_named(tmp_path: Path) -> None:
    compared = compare(load_campaign(make_campaign(tmp_path, 2, 5, with_evidence=True)))
    exported = set(fields(json.loads(export.json_text(compared))))
    assert {"ratio", "tested", "base_failed", "sentence", "values"} <= exported
    named = set(re.findall(r"`(?:variants\[\]\.|blame\.)?(\w+)(?:\[\])?`", FIELDS))
    assert exported <= named, exported - named
