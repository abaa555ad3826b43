# SPDX-License-Identifier: GPL-2.0-or-later
"""The page for users whose desktop froze: its commands are valid, and it is short."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from contract import remedy
from run.arguments import parse

SUITE = Path(__file__).resolve().parent.parent
PAGE = (SUITE / "docs" / "my-desktop-froze.md").read_text()
BLOCKS = re.findall(r"^```sh\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
RUNS = [line for block in BLOCKS for line in block.splitlines() if line.startswith("./run_test.sh")]


def test_it_is_short() -> None:
    assert len(PAGE.splitlines()) <= 80


@pytest.mark.parametrize("line", RUNS)
def test_its_runs_are_taken(line: str) -> None:
    options = parse(shlex.split(line)[1:])
    assert {variant.remedy for variant in options.variants} - {""} <= set(remedy.named())
    assert any(variant.remedy for variant in options.variants)


def test_the_log_of_the_boot_before_is_read_without_any_package() -> None:
    """As in its first command, but with a fixed log in place of the machine's journal."""
    (command,) = [line for block in BLOCKS for line in block.splitlines() if "kernlog" in line]
    assert command == "journalctl -k -b -1 | python3 -m analysis.kernlog -"
    line = "Nov 25 10:00:00 host kernel: Out of memory: Killed process 812 (firefox) total-vm:9kB\n"
    code = "import sys; sys.modules['numpy'] = None; from analysis.kernlog import main; main(['-'])"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=SUITE, input=line, capture_output=True, text=True
    )
    assert "1 OOM kill" in done.stdout and "firefox [812]" in done.stdout, done.stderr
