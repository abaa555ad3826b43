# SPDX-License-Identifier: GPL-2.0-or-later
"""The pages about trends: their output is a real trend's; their fields are those of trend.json."""

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

from analysis.trends.changes import divisions, level
from errors import Exit

SUITE = Path(__file__).resolve().parent.parent
TREND = (SUITE / "docs" / "reference" / "trend.md").read_text()
GUIDE = (SUITE / "docs" / "guides" / "ci-nightly.md").read_text()
EXAMPLE = SUITE / "docs" / "example" / "laptop-trend"


def test_the_output_shown_is_a_real_trends() -> None:
    (block,) = [
        text
        for language, text in re.findall(r"^```(\w*)\n(.*?)^```$", GUIDE, re.MULTILINE | re.DOTALL)
        if not language
    ]
    assert block in (EXAMPLE / "trend.txt").read_text()


def test_its_commands_are_there() -> None:
    (trend,) = re.findall(r"^```sh\n(python3 -m analysis\.trend .*?)^```", GUIDE, re.M | re.S)
    (night,) = re.findall(r"^```sh\n(\./nightly\.sh .*?)^```", GUIDE, re.M | re.S)
    lines = (trend + night).splitlines()
    assert len(lines) == 3
    for line in lines:
        words = shlex.split(line)
        program = [sys.executable, *words[1:3]] if words[0] == "python3" else words[:1]
        done = subprocess.run([*program, "--help"], cwd=SUITE, capture_output=True, text=True)
        assert done.returncode == 0 and done.stdout, line


def test_every_field_of_the_export_is_in_its_table() -> None:
    tables = TREND.split("## The fields of `--json`")[1].split("\n## ")[0]
    documented = set(re.findall(r"`(\w+)(?:\[\])?`", tables))

    def keys(value: Any) -> set[str]:
        if isinstance(value, list):
            return set().union(*map(keys, value))
        return set(value).union(*map(keys, value.values())) if isinstance(value, dict) else set()

    exported = keys(json.loads((EXAMPLE / "trend.json").read_text()))
    assert len(exported) > 30 and exported == documented


def test_the_level_is_the_documents() -> None:
    (formula,) = re.findall(r"^    (0\.05 / .*)$", TREND, re.MULTILINE)
    python = re.sub(r"([)c-n]) \(", r"\1 * (", formula).replace(")(", ") * (")
    for c in range(4):
        for n in range(2, 20):
            names = {"c": c, "n": n, "d": len(divisions(n))}
            assert abs(eval(python, {}, names) - level(c, n, 0.05)) < 1e-15


def test_the_status_is_the_documents() -> None:
    assert f"| {Exit.FAILED_ON} | the last change of a track is a regression" in GUIDE
