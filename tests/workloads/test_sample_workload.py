# SPDX-License-Identifier: GPL-2.0-or-later
"""The sample of docs/developer/adding-a-workload.md registers, is planned, and runs."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.suite_copy import SUITE, copied_to

PAGE = (SUITE / "docs" / "developer" / "adding-a-workload.md").read_text()
# Run where the sample is: a report reads what it says of itself, a guest its command line.
READ = """
import json
from analysis.reading.workload import read_workload
from contract.command_line import parse_measured
from run.arguments import parse
from run.measure_command import measure_argv
from workloads.registry import find, resolved, with_gitks
options = parse(["--workload", "fill", "--load", "size=32M"])
told, warnings = find("fill").describe(options), []
meta = json.loads(json.dumps({"workload": told.as_meta()}))
assert read_workload(meta, [], warnings) == told and not warnings, warnings
argv = measure_argv(options, options.variants[0], repo="/r", music="/m", run_dir="/o")
measured = resolved(parse_measured([*argv, "--device", "/dev/x"], with_gitks()))
assert (measured.workload, measured.load) == ("fill", "size=32M")
"""


def sample() -> str:
    (text,) = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    return str(text)


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    """The suite, with the sample."""
    copy = copied_to(tmp_path / "suite")
    (copy / "workloads" / "fill.py").write_text(sample())
    return copy


def test_it_is_short() -> None:
    assert len([line for line in sample().splitlines() if line.strip()]) <= 30


def test_it_registers_and_is_planned(suite: Path) -> None:
    (command,) = re.findall(r"^\./run_test\.sh --workload fill .*$", PAGE, re.MULTILINE)
    words = [sys.executable, "-m", "run.dry_run", *command.split()[1:]]
    done = subprocess.run(words, cwd=suite, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "--workload fill --load size=32M" in done.stdout
    assert "workload: heartbeat, player, a fill (size=32M)" in done.stdout
    done = subprocess.run([sys.executable, "-c", READ], cwd=suite, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_its_program_writes_and_leaves_its_figure(suite: Path, tmp_path: Path) -> None:
    figures = tmp_path / "figures.json"
    words = ["-S", "-m", "workloads.fill", "3", str(tmp_path), str(figures), "--wait"]
    done = subprocess.run(
        [sys.executable, *words], cwd=suite, input="\n", capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[0] == "ready" and len(done.stdout.splitlines()) == 4
    assert [(tmp_path / str(n)).stat().st_size for n in range(3)] == [1 << 20] * 3
    assert json.loads(figures.read_text())["time"] > 0
