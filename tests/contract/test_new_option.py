# SPDX-License-Identifier: GPL-2.0-or-later
"""A new option is one row: shown on a copy of the suite with one more in its table."""

import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.synthetic_results.make import make_campaign
from tests.support.suite_copy import copied_to

SUITE = Path(__file__).resolve().parents[2]
ROW = """
    tabs: int = parameter("tabs of a browser (default: 3)", values.up_to(50), "N", default=3)
"""
# What derives from the row, each asked for in its own words.
PRINTED = """
import sys
from contract.plan import ASKED
from graphs.bug_report.reproduce import command
from analysis.reading.load import load_campaign
from analysis.verdicts.compare import compare
from run.measure_command import guest_command
from run.arguments import parse
asked = parse(["--plan", sys.argv[1]])
print("planned", asked.tabs, asked.parameters["tabs"], "tabs" in ASKED["parameters"])
print(guest_command(asked, asked.variants[0]).replace("\\n", ""))
for line in command(compare(load_campaign(sys.argv[2]))):
    print(line)
"""


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    """The suite, with the row."""
    copy = copied_to(tmp_path / "suite")
    table = copy / "contract" / "option_table.py"
    before, crypt, after = table.read_text().partition("\n    crypt: bool")
    assert crypt
    table.write_text(before + ROW + crypt + after)
    return copy


def out_of(suite: Path, *argv: str) -> str:
    done = subprocess.run(argv, cwd=suite, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_parser_plan_guest_dry_run_and_how_to_reproduce_follow(suite: Path, tmp_path: Path) -> None:
    assert "--tabs N" in out_of(suite, "./run_test.sh", "--help")
    said = out_of(suite, "./run_test.sh", "--dry-run", "--tabs", "9")
    inside = next(line for line in said.splitlines() if "inside:" in line)
    assert "--tabs 9" in inside
    plan = tmp_path / "plan.toml"
    plan.write_text('[[variant]]\nkernel = "debian:6.1"\n[parameters]\ntabs = 7\n')
    results = make_campaign(tmp_path / "results", 2, 2)
    stored = results / "plan.toml"
    stored.write_text(stored.read_text().replace("[parameters]\n", "[parameters]\ntabs = 5\n"))
    told = out_of(suite, sys.executable, "-c", PRINTED, str(plan), str(results))
    first, guest, *reproduce = told.splitlines()
    assert first == "planned 7 7 True"
    assert shlex.split(guest)[shlex.split(guest).index("--tabs") + 1] == "7"
    assert "--tabs 5" in " ".join(reproduce)
    refused = subprocess.run(
        ["./run_test.sh", "--tabs", "51"], cwd=suite, capture_output=True, text=True
    )
    assert refused.returncode == 2 and "--tabs" in refused.stderr
